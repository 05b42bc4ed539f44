/**
 * Type resolution of plain (unquoted) YAML scalars. Source: gopkg.in/yaml.v2 resolve.go, encode.go
 */

const words = new Set(
  [
    ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"],
    ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"],
    ["", "~", "null", "Null", "NULL"],
    [".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"],
    ["<<"], // merge key; Go does not quote it, which breaks the round trip
  ].flat(),
);

const integer = /^[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9]\d*)$/;
const float = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/;
const pointFirst = /^\.(?:\d+(?:_\d+)*)(?:[eE][-+]?\d+)?$/;
const base60 = /^[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?$/;
const timestamp =
  /^(\d{4})-(\d\d?)-(\d\d?)(?:(?:[Tt](\d\d?):(\d\d?):(\d\d?)(?:[.,]\d+)?(?:Z|[-+]\d\d:\d\d))|(?: (\d\d?):(\d\d?):(\d\d?)(?:[.,]\d+)?))?$/;

/** True when a YAML reader resolves the plain scalar to a string; else it has to be quoted. */
export function readsAsText(text: string): boolean {
  if (words.has(text)) return false;
  const first = text.charCodeAt(0);
  if (first === 0x2e) return !pointFirst.test(text);
  if (!(first >= 0x30 && first <= 0x39) && first !== 0x2b && first !== 0x2d) return true;
  if (isTimestamp(text) || base60.test(text)) return false;
  const plain = text.replaceAll("_", "");
  return !isInteger(plain) && !(float.test(plain) && Number.isFinite(Number(plain)));
}

/** True for uint64 without a sign, int64 with a sign. */
function isInteger(plain: string): boolean {
  if (!integer.test(plain)) return false;
  const signed = plain.startsWith("+") || plain.startsWith("-");
  const digits = (signed ? plain.slice(1) : plain).replace(/^0(?=[0-7])/, "0o");
  const value = BigInt(digits);
  return value < 1n << 64n && (!signed || value < 1n << 63n || (plain.startsWith("-") && value === 1n << 63n));
}

function isTimestamp(text: string): boolean {
  const match = timestamp.exec(text);
  if (match === null) return false;
  const [year, month, day] = match.slice(1, 4).map(Number) as [number, number, number]; // cast: the expression has these groups
  const [hour, minute, second] = (match[4] === undefined ? match.slice(7, 10) : match.slice(4, 7)).map((part) =>
    Number(part ?? 0),
  );
  if (month < 1 || month > 12 || day < 1 || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return false;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1;
}
