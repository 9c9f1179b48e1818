"""The parts that the process as a whole needs: tasks and threads, logs, descriptors, certificates, the interpreter."""
