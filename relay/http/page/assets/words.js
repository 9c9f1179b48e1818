// Numbers, times and states as people read them.

export function bytes(count) {
  if (count === null || count === undefined) return "not known";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return `${unit === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${units[unit]}`;
}

export function rate(perSecond) {
  return perSecond === null || perSecond === undefined ? "not known" : `${bytes(perSecond)}/s`;
}

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "not known";
  if (seconds < 1) return "0 s";
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = parts.findIndex(([, size]) => seconds >= size);
  const [unit, size] = parts[first];
  const rest = parts[first + 1];
  const whole = Math.floor(seconds / size);
  const more = rest ? Math.floor((seconds - whole * size) / rest[1]) : 0;
  return more ? `${whole} ${unit} ${more} ${rest[0]}` : `${whole} ${unit}`;
}

export function when(unixSeconds) {
  return unixSeconds ? `${new Date(unixSeconds * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC` : "not known";
}

export function place(file, offset) {
  return file ? `${file}:${offset}` : "nowhere yet";
}

export function counted(count, one, many) {
  return `${count} ${count === 1 ? one : many}`;
}
