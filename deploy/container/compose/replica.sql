-- The image's own accounts are in the binlogs of both servers: these of the replica are forgotten first.
RESET BINARY LOGS AND GTIDS;
CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'relay', SOURCE_PORT = 3307, SOURCE_USER = 'replica', SOURCE_PASSWORD = 'replica-password',
  SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1;
