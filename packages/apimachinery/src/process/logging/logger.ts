import { writeSync } from "node:fs";
import { basename, dirname } from "node:path";
import winston from "winston";
import { errorCode } from "../../process/narrowing/error-code.ts";
import { type Clock, realClock } from "../clock/clock.ts";
import { type Fields, jsonLine, type LogFormat, type LogRecord, type Severity, textLine } from "./format.ts";
import { redacted } from "./sanitize.ts";
import { sourcePlace } from "./source-place.ts";
import { parseVmodule } from "./vmodule.ts";

export type { Fields, LogFormat } from "./format.ts";

/**
 * Structured logger. Messages are constant, variable parts go into fields: `log.info("created pods", { replicaSet: key, count
 * })`. Verbose messages check their level first, so that disabled ones cost nothing: `log.v(4)?.info("…", { … })`.
 */
export interface Logger {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  /** Logs the error with its chain of causes. */
  error(message: string, err?: unknown, fields?: Fields): void;
  /** Logs, then exits with status 255, as klog.Fatal does. */
  fatal(message: string, err?: unknown, fields?: Fields): never;
  /** @returns undefined when this level is disabled */
  v(level: number): { info(message: string, fields?: Fields): void } | undefined;
  /** Whether info messages of this level are logged. */
  enabled(level: number): boolean;
  /** Returns a logger with a component name, appended to this logger's. */
  named(component: string): Logger;
  /** Returns a logger that adds these fields to each line. */
  with(fields: Fields): Logger;
}

export interface RootLogger extends Logger {
  /** Changes the verbosity of this logger and all loggers derived from it (`/debug/flags/v`). */
  setVerbosity(verbosity: number): void;
}

export interface LoggerOptions {
  readonly format?: LogFormat;
  readonly verbosity?: number;
  /** `pattern=N,…`: levels for matching files or components. @throws Error when malformed */
  readonly vmodule?: string;
  readonly clock?: Clock;
  /** Omits date, severity and source location. */
  readonly skipHeaders?: boolean;
  /** Includes the directory in the source location. */
  readonly addDirHeader?: boolean;
  /** Redacts messages with secrets in their fields. */
  readonly sanitize?: boolean;
  /** `reflector.ts:88`: messages logged there include a stack trace, in the text format. @throws Error when malformed */
  readonly backtraceAt?: string;
  /** Output; default stderr, unbuffered. */
  readonly write?: (line: string, severity: Severity) => void;
  readonly exit?: (code: number) => never;
}

/** Creates a logger on top of winston, in klog's formats. */
export function newLogger(options: LoggerOptions = {}): RootLogger {
  const state: State = {
    verbosity: options.verbosity ?? 0,
    levelFor: parseVmodule(options.vmodule ?? ""),
    clock: options.clock ?? realClock,
    exit: options.exit ?? ((code) => process.exit(code)),
    sink: newSink(options),
    withDirectory: options.addDirHeader ?? false,
    sanitize: options.sanitize ?? false,
    backtraceAt: parseTraceLocation(options.backtraceAt ?? ""),
  };
  return new LeveledLogger(state, "", undefined);
}

interface State {
  verbosity: number;
  /** undefined without --vmodule; the caller's file need not be determined then. */
  readonly levelFor: ((name: string) => number | undefined) | undefined;
  readonly clock: Clock;
  readonly exit: (code: number) => never;
  readonly sink: winston.Logger;
  readonly withDirectory: boolean;
  readonly sanitize: boolean;
  readonly backtraceAt: string | undefined;
}

/** Source: k8s.io/klog v2, traceLocation.Set */
function parseTraceLocation(text: string): string | undefined {
  if (text === "" || text === ":0") return undefined;
  const [file = "", line = "", ...more] = text.split(":");
  if (more.length > 0 || !file.includes(".") || !/^-?[0-9]{1,9}$/.test(line)) {
    throw new Error("syntax error: expect file.go:234");
  }
  if (Number(line) <= 0) throw new Error("negative or zero value for level");
  return `${file}:${Number(line)}`;
}

/** Exported by winston but missing in its types. */
const { Transport } = winston as unknown as { Transport: new () => winston.transport }; // cast: its declarations lack the class

/** Creates the winston logger: the format renders the line, the transport writes it synchronously. */
function newSink(options: LoggerOptions): winston.Logger {
  const write = options.write ?? writeToStderr;
  const line =
    options.format === "json"
      ? (record: LogRecord) => jsonLine(record)
      : (record: LogRecord) => textLine(record, { pid: process.pid, skipHeaders: options.skipHeaders ?? false });
  const transport = new Transport();
  transport.log = (info, next) => {
    write(info.line, info.record.severity);
    next();
  };
  // Cast: the logger below passes a record.
  const format = winston.format((info) => Object.assign(info, { line: line(info["record"] as LogRecord) }));
  return winston.createLogger({ level: "info", format: format(), transports: [transport], exitOnError: false });
}

/** Synchronous, as `writeFully`; adds no newline. */
export function writeToStderr(line: string): void {
  writeFully(2, line);
}

/** Writes all of the text synchronously; drops the rest on errors, or when a full pipe is not drained. */
export function writeFully(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let sent = 0, tries = 0; sent < bytes.length && tries < 1000; ) {
    try {
      sent += writeSync(descriptor, bytes, sent);
    } catch (err) {
      // A full pipe returns EAGAIN: retry, but not forever.
      if (errorCode(err) !== "EAGAIN") return;
      tries++;
    }
  }
}

class LeveledLogger implements RootLogger {
  readonly #state: State;
  readonly #name: string;
  readonly #fields: Fields | undefined;
  readonly #levels: { info(message: string, fields?: Fields): void }[] = [];

  constructor(state: State, name: string, fields: Fields | undefined) {
    this.#state = state;
    this.#name = name;
    this.#fields = fields;
  }

  info(message: string, fields?: Fields): void {
    this.#write("I", 0, message, undefined, fields);
  }

  warn(message: string, fields?: Fields): void {
    this.#write("W", 0, message, undefined, fields);
  }

  error(message: string, err?: unknown, fields?: Fields): void {
    this.#write("E", 0, message, err, fields);
  }

  fatal(message: string, err?: unknown, fields?: Fields): never {
    this.#write("F", 0, message, err, fields);
    return this.#state.exit(255);
  }

  v(level: number): { info(message: string, fields?: Fields): void } | undefined {
    if (level > this.#state.verbosity && !this.enabled(level)) return undefined;
    this.#levels[level] ??= { info: (message, fields) => this.#write("I", level, message, undefined, fields) };
    return this.#levels[level];
  }

  enabled(level: number): boolean {
    const { verbosity, levelFor } = this.#state;
    if (level <= verbosity) return true;
    if (levelFor === undefined) return false;
    const own = this.#name === "" ? undefined : levelFor(this.#name);
    return level <= (own ?? levelFor(callerOf(this.enabled, "v").replace(/\.[^.]*$/, "")) ?? verbosity);
  }

  named(component: string): Logger {
    return new LeveledLogger(this.#state, this.#name === "" ? component : `${this.#name}.${component}`, this.#fields);
  }

  with(fields: Fields): Logger {
    return new LeveledLogger(this.#state, this.#name, { ...this.#fields, ...fields });
  }

  setVerbosity(verbosity: number): void {
    this.#state.verbosity = verbosity;
  }

  #write(severity: Severity, level: number, message: string, error: unknown, fields: Fields | undefined): void {
    const { clock, withDirectory, sanitize, backtraceAt, sink } = this.#state;
    const all = this.#fields === undefined ? fields : { ...this.#fields, ...fields };
    const caller = callerOf(this.#write, undefined, withDirectory);
    const record: LogRecord = {
      severity,
      level,
      message,
      error,
      fields: all,
      time: clock.now(),
      name: this.#name,
      caller,
      ...(sanitize && all !== undefined && redacted(all)),
      stack: backtraceAt !== undefined && basename(caller) === backtraceAt ? stackAbove(this.#write) : undefined,
    };
    sink.log({ level: severity === "I" ? "info" : severity === "W" ? "warn" : "error", message, record });
  }
}

/** `file.ts:line` of the logger's caller. */
function callerOf(below: (...args: never[]) => unknown, skip?: string, withDirectory = false): string {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.stackTraceLimit = 4;
  Error.prepareStackTrace = (_error, sites) => sites;
  const holder: { stack?: NodeJS.CallSite[] } = {};
  Error.captureStackTrace(holder, below);
  const sites = holder.stack ?? [];
  Error.prepareStackTrace = prepareStackTrace;
  Error.stackTraceLimit = stackTraceLimit;
  const places = sites.map((site) => ({
    ...sourcePlace(site.getFileName() ?? "unknown", site.getLineNumber() ?? 1),
    name: site.getFunctionName(),
  }));
  const { file, line } = places.find((one) => !ownFile.test(one.file) && one.name !== skip) ?? places.at(-1) ?? nowhere;
  const directory = withDirectory ? `${basename(dirname(file))}/` : "";
  return `${directory}${basename(file)}:${line}`;
}

const ownFile = /\/logging\/logger\.[jt]s$/;
const nowhere = { file: "unknown", line: 1 };

function stackAbove(below: (...args: never[]) => unknown): string {
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, below);
  // The first two lines are the error and the logger's own method.
  return (holder.stack ?? "").split("\n").slice(2).join("\n");
}

/** Discards everything, for tests. */
export const discardLogger: Logger = {
  info: () => {},
  warn: () => {},
  error: () => {},
  fatal: (message, err) => {
    throw new Error(message, { cause: err });
  },
  v: () => undefined,
  enabled: () => false,
  named: () => discardLogger,
  with: () => discardLogger,
};
