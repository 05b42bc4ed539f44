/** Info, warning, error, fatal. */
export type Severity = "I" | "W" | "E" | "F";
export type LogFormat = "text" | "json";
/** Key-value pairs of a message; undefined values are left out. */
export type Fields = Readonly<Record<string, unknown>>;

export interface LogRecord {
  readonly severity: Severity;
  /** The verbosity level of an info message, 0 otherwise. */
  readonly level: number;
  readonly message: string;
  readonly error: unknown;
  readonly fields: Fields | undefined;
  /** ms since the epoch, with fractions. */
  readonly time: number;
  /** Name of the component; `""` without one. */
  readonly name: string;
  /** `reflector.ts:88` */
  readonly caller: string;
  /** Stack trace of the call, for --log-backtrace-at. */
  readonly stack?: string | undefined;
}

/**
 * klog's format: `I0102 15:04:05.000000    1234 reflector.ts:88] "watch ended" resource="pods"`. A message without fields is not
 * quoted, like upstream's unstructured ones.
 * Source: k8s.io/klog v2, header and printS
 */
export function textLine(record: LogRecord, options: { pid: number; skipHeaders: boolean }): string {
  const structured = record.fields !== undefined || record.error !== undefined;
  let line = options.skipHeaders ? "" : header(record, options.pid);
  line += structured ? JSON.stringify(record.message) : record.message.replaceAll("\n", "\\n");
  if (record.error !== undefined) line += ` err=${JSON.stringify(errorChain(record.error))}`;
  if (record.name !== "") line += ` logger=${JSON.stringify(record.name)}`;
  for (const key of Object.keys(record.fields ?? {})) {
    const value = record.fields?.[key];
    if (value !== undefined) line += ` ${key}=${textValue(value)}`;
  }
  return record.stack === undefined ? `${line}\n` : `${line}\n${record.stack}\n`;
}

/** One JSON object per line: `ts` in ms, `caller`, `msg`, `v` or `err`, then the fields. Source: component-base/logs/json */
export function jsonLine(record: LogRecord): string {
  const entry: Record<string, unknown> = {
    ts: Math.round(record.time * 1000) / 1000,
    caller: record.caller,
    msg: record.message,
  };
  if (record.severity === "I") entry["v"] = record.level;
  if (record.severity === "W") entry["severity"] = "warning";
  if (record.error !== undefined) entry["err"] = errorChain(record.error);
  if (record.name !== "") entry["logger"] = record.name;
  for (const key of Object.keys(record.fields ?? {})) {
    if (!Object.hasOwn(entry, key)) Object.defineProperty(entry, key, { value: record.fields?.[key], enumerable: true });
  }
  return `${safeStringify(entry)}\n`;
}

function header({ severity, time, caller }: LogRecord, pid: number): string {
  const date = new Date(time);
  const micros = Math.floor((time % 1) * 1000);
  const day = two(date.getMonth() + 1) + two(date.getDate());
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const fraction = three(date.getMilliseconds()) + three(micros);
  return `${severity}${day} ${clock}.${fraction} ${String(pid).padStart(7)} ${caller}] `;
}

const two = (value: number): string => (value < 10 ? `0${value}` : String(value));
const three = (value: number): string => String(value).padStart(3, "0");

function textValue(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "string") return JSON.stringify(value);
  if (value instanceof Error) return JSON.stringify(errorChain(value));
  if (value instanceof Date) return JSON.stringify(value.toISOString());
  return safeStringify(value);
}

/**
 * The messages of an error and its causes, without repetitions. Programming errors (TypeError and the like) include their stack.
 */
function errorChain(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  for (let depth = 0; current !== undefined && current !== null && depth < 10; depth++) {
    const text = current instanceof Error ? describe(current) : String(current);
    if (!parts.some((part) => part.includes(text))) parts.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  return parts.join(": ");
}

function describe(error: Error): string {
  const ours = error.name === "Error" || error.name === "StatusError" || error.name === "AbortError" || "code" in error;
  if (!ours && error.stack !== undefined) return error.stack;
  if (error instanceof AggregateError && error.message === "") return error.errors.map(errorChain).join(", ");
  return error.message === "" ? error.name : error.message;
}

function safeStringify(value: unknown): string {
  try {
    return (
      JSON.stringify(value, (_key, item) =>
        typeof item === "bigint" ? String(item) : item instanceof Error ? errorChain(item) : item,
      ) ?? "null"
    );
  } catch {
    return '"<cannot be shown>"';
  }
}
