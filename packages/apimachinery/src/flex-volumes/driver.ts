import { spawn } from "node:child_process";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { parseJsonText } from "../objects/codec/json-parse.ts";

/** Capabilities that a driver reports on `init`. Defaults: attach and fsGroup true, supportsMetrics false. */
interface FlexCapabilities {
  readonly attach: boolean;
  readonly supportsMetrics: boolean;
  readonly fsGroup: boolean;
}

export interface FlexDriver {
  readonly capabilities: FlexCapabilities;
  /**
   * Runs the driver's executable.
   * @throws NotSupported for a command that the driver does not support; Error with upstream's text when it fails
   */
  call(command: string, ...args: readonly string[]): Promise<FlexAnswer>;
}

/** Result of a successful driver call. */
interface FlexAnswer {
  /** Device path from `attach` and `waitforattach`; `""` for none. */
  readonly device: string;
  /** Result of `isattached`. */
  readonly attached: boolean;
}

/** The driver does not support the command; callers fall back to default behaviour. */
export class NotSupported extends Error {}

export interface FlexDrivers {
  /** @param name `vendor/driver` @returns undefined when the executable is missing or `init` fails */
  find(name: string): Promise<FlexDriver | undefined>;
  /** Names of all drivers in the folder, including those that do not work. */
  names(): Promise<string[]>;
}

interface Answer {
  readonly status?: unknown;
  readonly message?: unknown;
  readonly device?: unknown;
  readonly attached?: unknown;
  readonly capabilities?: Readonly<Record<string, unknown>>;
}

/**
 * Drivers are executables at `<folder>/vendor~driver/driver`. `init` is called once for each, and again when the file was
 * replaced. Upstream watches the folder instead.
 * Source: pkg/volume/flexvolume probe.go, driver-call.go
 */
export function newFlexDrivers(folder: string): FlexDrivers {
  const known = new Map<string, { readonly version: string; readonly driver: Promise<FlexDriver | undefined> }>();
  return {
    async find(name) {
      const program = programOf(folder, name);
      const info = program === undefined ? undefined : await stat(program).catch(() => undefined);
      if (program === undefined || !info?.isFile()) return void known.delete(name);
      const version = `${info.ino} ${info.mtimeMs} ${info.ctimeMs}`;
      const found = known.get(name);
      if (found?.version === version) return found.driver;
      const driver = openDriver(program);
      known.set(name, { version, driver });
      driver.then(
        (opened) => opened === undefined && known.delete(name),
        () => known.delete(name),
      );
      return driver;
    },
    async names() {
      const folders = await readdir(folder).catch(() => []);
      return folders.filter((name) => !name.startsWith(".")).map((name) => name.replaceAll("~", "/"));
    },
  };
}

/** Path of the executable; undefined for invalid names. Names come from users and must not escape the folder. */
function programOf(folder: string, name: string): string | undefined {
  if (name === "" || name.startsWith(".") || /[~\0]/.test(name)) return undefined;
  const program = name.slice(name.lastIndexOf("/") + 1);
  if (program === "" || program === "." || program === "..") return undefined;
  return join(folder, name.replaceAll("/", "~"), program);
}

async function openDriver(program: string): Promise<FlexDriver | undefined> {
  const unsupported = new Set<string>();
  const call = async (command: string, args: readonly string[]): Promise<Answer> => {
    if (unsupported.has(command)) throw new NotSupported("Not supported");
    try {
      return await run(program, command, args);
    } catch (err) {
      if (err instanceof NotSupported) unsupported.add(command);
      throw err;
    }
  };
  const answer = await call("init", []).catch(() => undefined);
  if (answer === undefined) return undefined;
  const can = (name: string, byDefault: boolean): boolean =>
    typeof answer.capabilities?.[name] === "boolean" ? answer.capabilities[name] : byDefault;
  return {
    capabilities: { attach: can("attach", true), supportsMetrics: can("supportsMetrics", false), fsGroup: can("fsGroup", true) },
    async call(command, ...args) {
      const { device, attached } = await call(command, args);
      return { device: typeof device === "string" ? device : "", attached: attached === true };
    },
  };
}

/** Runs a command. The output on stdout and stderr together has to be one JSON object. */
async function run(program: string, command: string, args: readonly string[]): Promise<Answer> {
  const { output, failure } = await outputOf(program, [command, ...args], limitsMs[command]);
  if (failure === timedOut) throw new Error(failure);
  const answer = parseJsonText(output) as Answer | null; // cast: drivers are trusted; a missing status fails below
  if (answer?.status === "Not supported") throw new NotSupported("Not supported");
  if (answer?.status !== "Success") {
    throw new Error(`${command} command failed, status: ${answer?.status ?? ""}, reason: ${answer?.message ?? ""}`);
  }
  if (failure !== undefined) throw new Error(failure);
  return answer;
}

const mostOutput = 1024 * 1024;
const timedOut = "timeout";
/** Timeouts in ms by command; the others have none. Source: pkg/kubelet/volumemanager waitForAttachTimeout */
const limitsMs: Readonly<Record<string, number>> = { waitforattach: 10 * 60_000 };

function outputOf(
  program: string,
  args: readonly string[],
  timeout: number | undefined,
): Promise<{ output: string; failure: string | undefined }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], ...(timeout !== undefined && { timeout }) });
    let output = "";
    const take = (chunk: string): void => {
      if (output.length < mostOutput) output += chunk;
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", take);
    child.once("error", (err) => resolve({ output, failure: err.message }));
    child.once("close", (code, signal) => {
      const ended = code === 0 ? undefined : code === null ? `signal: ${signal}` : `exit status ${code}`;
      resolve({ output, failure: timeout !== undefined && child.killed ? timedOut : ended });
    });
  });
}
