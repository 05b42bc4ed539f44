import { closeSync, fstatSync, openSync, symlinkSync, unlinkSync, writeSync } from "node:fs";
import { hostname, tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { makeFolderSync } from "../files/make-folder.ts";
import type { Severity } from "./format.ts";

export type LineWriter = (line: string, severity: Severity) => void;

/** klog's file flags, which only apply without `logtostderr`. */
export interface LogFileOptions {
  readonly program: string;
  readonly logtostderr: boolean;
  readonly alsologtostderr: boolean;
  /** 0 to 3, or INFO, WARNING, ERROR, FATAL: minimum severity of lines that also go to stderr. */
  readonly stderrthreshold: string;
  /** Single file for all severities. */
  readonly logFile: string;
  readonly logFileMaxSizeMb: number;
  /** Directory with a file per severity; default the system's temporary directory. */
  readonly logDir: string;
  readonly oneOutput: boolean;
  readonly skipLogHeaders: boolean;
}

const severities: readonly Severity[] = ["I", "W", "E", "F"];
const names = ["INFO", "WARNING", "ERROR", "FATAL"] as const;

/**
 * Writes lines to files and stderr. The file of a severity also receives more severe lines, unless `oneOutput` is set.
 * @throws Error for an invalid threshold, or when a file cannot be opened
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
  const named = names.findIndex((name) => name === text.toUpperCase());
  if (named >= 0) return named;
  if (/^[0-9]{1,2}$/.test(text)) return Number(text);
  throw new Error(`invalid severity for --stderrthreshold: ${JSON.stringify(text)}`);
}

/** Creates the directory and links the short name to the new file. @returns the path of the new file */
function datedName({ program, logDir }: LogFileOptions, name: string): string {
  const directory = logDir === "" ? tmpdir() : logDir;
  makeFolderSync(directory);
  const host = hostname().split(".")[0]!;
  const stamp = new Date().toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15);
  const file = `${program}.${host}.${userName()}.log.${name}.${stamp}.${process.pid}`;
  const link = join(directory, `${program}.${name}`);
  try {
    unlinkSync(link);
  } catch {
    // The link did not exist.
  }
  try {
    symlinkSync(file, link);
  } catch {
    // The link is optional.
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

/** A file that is opened at its first line and replaced when it reaches its size limit. */
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
    this.#size += writeSync(this.#descriptor!, bytes);
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
