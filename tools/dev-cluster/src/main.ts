import { spawn } from "node:child_process";
import { createReadStream, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runCerts } from "@coxswain/pki/command";
import { type DaemonName, daemonNames, programOf } from "./daemons.ts";
import { down } from "./down.ts";
import { Failure, newProgress } from "./failure.ts";
import { findKubectl } from "./kubectl.ts";
import { certsCommand, kubeconfigFile } from "./pki.ts";
import { logFile } from "./processes.ts";
import { readSettings } from "./settings.ts";
import { status } from "./status.ts";
import { howToUse, processNames, rememberSettings, up } from "./up.ts";

const settings = readSettings(join(dirname(fileURLToPath(import.meta.url)), "..", "..", ".."));

/** The verbs of `./cox` that are about a cluster. Each returns the exit code. */
const verbs: Readonly<Record<string, (args: string[]) => Promise<number> | number>> = {
  async up() {
    await up(settings, newProgress());
    rememberSettings(settings);
    console.log(howToUse(settings));
    return 0;
  },
  async down(args) {
    await down(settings, newProgress(), args.includes("--purge"));
    return 0;
  },
  status: () => status(settings),
  logs(args) {
    const name = args.find((arg) => !arg.startsWith("-"));
    const known = processNames(settings);
    if (name === undefined || !known.includes(name))
      throw new Failure(`usage: ./cox logs [-f] <name>, one of ${known.join(", ")}`);
    if (!existsSync(logFile(settings, name))) throw new Failure(`there is no log of ${name}: it was not started`);
    if (args.includes("-f")) return passThrough("tail", ["-n", "+1", "-F", logFile(settings, name)]);
    return new Promise((resolve) => {
      createReadStream(logFile(settings, name))
        .on("end", () => resolve(0))
        .pipe(process.stdout);
    });
  },
  async kubectl(args) {
    const env = { ...process.env };
    if (existsSync(kubeconfigFile(settings, "admin"))) env["KUBECONFIG"] ??= kubeconfigFile(settings, "admin");
    return passThrough(await findKubectl(settings), args, env);
  },
  run([name, ...flags]) {
    if (!daemonNames.includes(name as DaemonName))
      throw new Failure(`usage: ./cox run <daemon> [flags], one of ${daemonNames.join(", ")}`);
    return passThrough(process.execPath, [programOf(settings, name as DaemonName), ...flags]);
  },
  certs: (args) => runCerts(certsCommand(settings).name("./cox certs"), args),
};

/** Runs a program in our place: its input, output, signals and exit code are ours. */
function passThrough(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<number> {
  const child = spawn(command, args, { stdio: "inherit", env });
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => child.kill(name));
  return new Promise((resolve, reject) => {
    child.once("error", (err) => reject(new Failure(`cannot run ${command}: ${err.message}`)));
    child.once("exit", (code, signal) => resolve(code ?? (signal === null ? 1 : 130)));
  });
}

const [verb = "", ...args] = process.argv.slice(2);
try {
  const run = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (run === undefined) throw new Failure(`unknown verb ${verb}; one of ${Object.keys(verbs).join(", ")}`);
  process.exitCode = await run(args);
} catch (err) {
  process.stderr.write(err instanceof Failure ? `cox: ${err.message}\n` : `cox: ${(err as Error).stack}\n`);
  process.exitCode = 1;
}
