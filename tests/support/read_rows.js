// Reads inserted rows from a binlog as people do with zongji: `node read_rows.js MODULE OPTIONS`; OPTIONS is JSON with host, port,
// user, password, filename, position, count. Prints one line of JSON for each row, its values by the names of the columns.
const [name, text] = process.argv.slice(2);
const loaded = require(name);
const ZongJi = loaded.ZongJi || loaded.default || loaded;
const options = JSON.parse(text);
const login = { host: options.host, port: options.port, user: options.user, password: options.password };
const reader = new ZongJi(login);
let left = options.count;

function fail(error) {
  console.error(String(error && error.stack ? error.stack : error));
  process.exit(1);
}

reader.on('error', fail);
reader.on('binlog', event => {
  if (event.getEventName() !== 'writerows') {
    return;
  }
  const table = event.tableMap[event.tableId];
  for (const row of event.rows) {
    console.log(JSON.stringify({ schema: table.parentSchema, table: table.tableName, row }));
    left -= 1;
  }
  if (left <= 0) {
    process.exit(0);
  }
});
setTimeout(() => fail('not all rows came'), 20000);
reader.start({
  serverId: 977,
  filename: options.filename,
  position: options.position,
  includeEvents: ['rotate', 'tablemap', 'writerows'],
});
