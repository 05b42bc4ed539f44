import { closeSync, fstatSync, openSync, symlinkSync, unlinkSync, writeSync } from "node:fs";
import { hostname, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { makeFolderSync } from "../files/make-folder.ts";
import type { Severity } from "./format.ts";

export type LineWriter = (line: string, severity: Severity) => void;

/** klog's flags for files. They are only looked at when `logtostderr` is off. */
export interface LogFileOptions {
  readonly program: string;
  readonly logtostderr: boolean;
  readonly alsologtostderr: boolean;
  /** 0 to 3, or INFO, WARNING, ERROR, FATAL: what goes to stderr too. */
  readonly stderrthreshold: string;
  /** One file for everything. */
  readonly logFile: string;
  readonly logFileMaxSizeMb: number;
  /** A directory with a file for each severity; default the system's for temporary files. */
  readonly logDir: string;
  readonly oneOutput: boolean;
  readonly skipLogHeaders: boolean;
}

const severities: readonly Severity[] = ["I", "W", "E", "F"];
const names = ["INFO", "WARNING", "ERROR", "FATAL"] as const;

/**
 * Where lines go besides stderr. A file of a severity gets the graver lines too, unless `oneOutput`.
 * @throws Error for a threshold that is none, or a file that cannot be opened
 * Source: k8s.io/klog v2, output and createFiles
 */
export function newFileWriter(options: LogFileOptions, toStderr: LineWriter): LineWriter {
  if (options.logtostderr) return toStderr;
  const threshold = parseThreshold(options.stderrthreshold);
  const single = options.logFile === "" ? undefined : new LogFile(() => options.logFile, options);
  const files = names.map((name) => new LogFile(() => datedName(options, name), options));
  return (line, severity) => {
    const rank = severities.indexOf(severity);
    if (options.alsologtostderr || rank >= threshold) toStderr(line, severity);
    if (single !== undefined) single.write(line);
    else if (options.oneOutput) files[rank]?.write(line);
    else for (const file of files.slice(0, rank + 1)) file.write(line);
  };
}

function parseThreshold(text: string): number {
  const named = (names as readonly string[]).indexOf(text.toUpperCase());
  if (named >= 0) return named;
  if (/^[0-9]{1,2}$/.test(text)) return Number(text);
  throw new Error(`invalid severity for --stderrthreshold: ${JSON.stringify(text)}`);
}

/** Makes the directory and a link from the short name to the newest file. */
function datedName({ program, logDir }: LogFileOptions, name: string): string {
  const directory = logDir === "" ? tmpdir() : logDir;
  makeFolderSync(directory);
  const host = hostname().split(".")[0] as string;
  const stamp = new Date().toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15);
  const file = `${program}.${host}.${userName()}.log.${name}.${stamp}.${process.pid}`;
  const link = join(directory, `${program}.${name}`);
  try {
    unlinkSync(link);
  } catch {
    // There was none.
  }
  try {
    symlinkSync(file, link);
  } catch {
    // The log works without it.
  }
  return join(directory, file);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "unknownuser";
  }
}

/** Opened at its first line, begun anew when it is too large. */
class LogFile {
  readonly #name: () => string;
  readonly #limitBytes: number;
  readonly #header: boolean;
  #descriptor: number | undefined;
  #size = 0;

  constructor(name: () => string, options: LogFileOptions) {
    this.#name = name;
    this.#limitBytes = options.logFileMaxSizeMb === 0 ? Number.POSITIVE_INFINITY : options.logFileMaxSizeMb * 2 ** 20;
    this.#header = !options.skipLogHeaders;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#descriptor === undefined) this.#open("a");
    else if (this.#size + bytes.length >= this.#limitBytes) {
      closeSync(this.#descriptor);
      this.#open("w");
    }
    this.#size += writeSync(this.#descriptor as number, bytes);
  }

  #open(mode: "a" | "w"): void {
    this.#descriptor = openSync(this.#name(), mode, 0o644);
    this.#size = fstatSync(this.#descriptor).size;
    if (!this.#header) return;
    const lines = [
      `Log file created at: ${new Date().toISOString()}`,
      `Running on machine: ${hostname()}`,
      `Binary: Built with node ${process.version}`,
    ];
    this.#size += writeSync(
      this.#descriptor,
      `${lines.join("\n")}\nLog line format: [IWEF]mmdd hh:mm:ss.uuuuuu threadid file:line] msg\n`,
    );
  }
}
