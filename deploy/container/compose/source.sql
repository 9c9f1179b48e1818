-- Not in the binlogs: replicas have accounts of their own.
SET sql_log_bin = 0;
CREATE USER 'repl'@'%' IDENTIFIED BY 'source-password';
GRANT REPLICATION SLAVE, REPLICATION CLIENT, REFERENCES ON *.* TO 'repl'@'%';
SET sql_log_bin = 1;
