import { messageOf } from "../objects/errors/message.ts";
import { Quantity } from "../objects/meta/quantity.ts";
import { realClock } from "../process/clock/clock.ts";
import { type LineWriter, type LogFileOptions, newFileWriter } from "../process/logging/log-files.ts";
import { type LoggerOptions, newLogger, type RootLogger, writeFully, writeToStderr } from "../process/logging/logger.ts";
import { newSplitWriter } from "../process/logging/split-streams.ts";
import { kubernetesRelease } from "../process/release.ts";
import { type FeatureGates, newFeatureGates } from "./feature-gates.ts";
import { FlagError, type FlagTable, type FlagValues, type ParsedFlags, type Program, parseFlags } from "./flags.ts";
import { helpText, usageText } from "./help.ts";

/** Context of a program's `run`. */
export interface Runtime {
  readonly log: RootLogger;
  /** Aborted by the first SIGTERM or SIGINT; the program has to shut down gracefully and `run` to return. */
  readonly signal: AbortSignal;
  readonly featureGates: FeatureGates;
  /** Flags given on the command line. */
  readonly set: ReadonlySet<string>;
}

/** An invalid configuration; printed as one line, exit code 1. */
export class ConfigError extends Error {}

/**
 * Runs a daemon: command line, logging, signals, exit code. The process exits when `run` returns. Exit codes: 0 after help,
 * version and graceful shutdown; 1 for an invalid command line or configuration and for a second signal; 255 for an uncaught
 * error.
 */
export async function runMain<T extends FlagTable>(
  program: Program<T>,
  run: (flags: FlagValues<T>, runtime: Runtime) => Promise<void>,
): Promise<void> {
  const parsed = parse(program, process.argv.slice(2));
  if (parsed === undefined) return;
  const { values, set } = parsed;
  let log: RootLogger;
  let featureGates: FeatureGates;
  try {
    log = newLogger(loggingOptions(program.name, values));
    featureGates = newFeatureGates(program.name, values["feature-gates"] ?? {});
  } catch (err) {
    return refuse(program, messageOf(err));
  }
  for (const warning of featureGates.warnings) log.warn(warning);
  report(program, parsed, log);
  const stopping = new AbortController();
  stopOnSignal(stopping, log);
  process.on("unhandledRejection", (err) => {
    if (values["really-crash-for-testing"] === true) log.fatal("unhandled promise rejection", err);
    log.error("unhandled promise rejection; continuing", err);
  });
  process.on("uncaughtException", (err) => log.fatal("uncaught exception", err));
  try {
    await run(values, { log, signal: stopping.signal, featureGates, set });
    process.exit(0);
  } catch (err) {
    if (stopping.signal.aborted && err === stopping.signal.reason) process.exit(0);
    if (err instanceof ConfigError) {
      process.stderr.write(`Error: ${err.message}\n`);
      process.exit(1);
    }
    log.fatal(`${program.name} failed`, err);
  }
}

/** @returns undefined when help or version was printed */
function parse<T extends FlagTable>(program: Program<T>, argv: readonly string[]): ParsedFlags<T> | undefined {
  let parsed: ParsedFlags<T>;
  try {
    parsed = parseFlags(program.flags, argv);
  } catch (err) {
    if (!(err instanceof FlagError)) throw err;
    return refuse(program, err.message);
  }
  if (parsed.help) {
    process.stdout.write(helpText(program, process.stdout.columns));
    return undefined;
  }
  if (parsed.version !== undefined && parsed.version !== "false") {
    process.stdout.write(
      parsed.version === "raw" ? `${JSON.stringify(versionInfo)}\n` : `Kubernetes ${kubernetesRelease.gitVersion}\n`,
    );
    return undefined;
  }
  return parsed;
}

/** The response of /version. Source: k8s.io/apimachinery pkg/version */
const versionInfo = {
  ...kubernetesRelease,
  gitCommit: "",
  gitTreeState: "",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: process.version,
  compiler: "v8",
  platform: `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
};

/** Prints an invalid command line; the format differs by program, as upstream. */
function refuse(program: Program, message: string): undefined {
  if (program.name === "kubelet") {
    newLogger().error("Failed to parse kubelet flag", new Error(message));
    process.stderr.write(usageText(program));
  } else {
    const usage = program.name === "kube-apiserver" ? "" : `${usageText(program)}\n`;
    process.stderr.write(`Error: ${message}\n${usage}`);
  }
  process.exit(1);
}

function loggingOptions(program: string, values: Readonly<Record<string, unknown>>): LoggerOptions {
  const format = values["logging-format"];
  if (format !== undefined && format !== "text" && format !== "json")
    throw new Error(`unsupported log format: ${String(format)}`);
  const files: LogFileOptions = {
    program,
    logtostderr: values["logtostderr"] !== false,
    alsologtostderr: values["alsologtostderr"] === true,
    stderrthreshold: String(values["stderrthreshold"] ?? "2"),
    logFile: String(values["log-file"] ?? ""),
    logFileMaxSizeMb: Number(values["log-file-max-size"] ?? 1800),
    logDir: String(values["log-dir"] ?? ""),
    oneOutput: values["one-output"] === true,
    skipLogHeaders: values["skip-log-headers"] === true,
  };
  return {
    format: format ?? "text",
    verbosity: Number(values["v"] ?? 0),
    vmodule: String(values["vmodule"] ?? ""),
    skipHeaders: values["skip-headers"] === true,
    addDirHeader: values["add-dir-header"] === true,
    sanitize: values["experimental-logging-sanitization"] === true,
    backtraceAt: String(values["log-backtrace-at"] ?? ""),
    write:
      format === "json" && values["log-json-split-stream"] === true ? splitStreams(values) : newFileWriter(files, writeToStderr),
  };
}

function splitStreams(values: Readonly<Record<string, unknown>>): LineWriter {
  const write = newSplitWriter({
    toStdout: (text) => writeFully(1, text),
    toStderr: writeToStderr,
    bufferBytes: Quantity.parse(String(values["log-json-info-buffer-size"] ?? "0")).value(),
    flushMs: Number(values["log-flush-frequency"] ?? 5_000),
    clock: realClock,
  });
  process.once("exit", () => write.flush());
  return write;
}

/** Reports deprecated flags and flags without effect that were set. */
function report<T extends FlagTable>(program: Program<T>, { values, set }: ParsedFlags<T>, log: RootLogger): void {
  const all: Readonly<Record<string, unknown>> = values;
  for (const [name, flag] of Object.entries<FlagTable[string]>(program.flags.table)) {
    const value = all[name];
    log.v(1)?.info(`FLAG: --${name}=${JSON.stringify(flag.format(value))}`);
    if (!set.has(name)) continue;
    if (flag.deprecated !== undefined) process.stderr.write(`Flag --${name} has been deprecated, ${flag.deprecated}\n`);
    if (flag.wired === false && flag.format(value) !== flag.format(flag.default)) {
      log.warn("this flag is accepted and has no effect yet", { flag: `--${name}`, value: flag.format(value) });
    }
  }
}

function stopOnSignal(stopping: AbortController, log: RootLogger): void {
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      if (stopping.signal.aborted) process.exit(1);
      log.info("received a signal, shutting down", { signal: name });
      stopping.abort(new Error(`stopped by ${name}`));
    });
  }
}
