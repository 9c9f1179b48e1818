#!/bin/sh
# The Python of a local session's workers: $BINLOG_RELAY_PYTHON, without the zips of pyspark and py4j that Spark puts in front
# of what is installed. Each process would compile what it imports of them anew, which takes half a second.
path=:$PYTHONPATH:
for zip in "$SPARK_HOME"/python/lib/*.zip; do
    while :; do
        case $path in
            *":$zip:"*) path=${path%%":$zip:"*}:${path#*":$zip:"} ;;
            *) break ;;
        esac
    done
done
path=${path#:}
PYTHONPATH=${path%:}
export PYTHONPATH
exec "$BINLOG_RELAY_PYTHON" "$@"
