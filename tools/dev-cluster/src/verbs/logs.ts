import { existsSync, globSync } from "node:fs";
import { basename, join } from "node:path";
import type { Command } from "commander";
import { UsageFailure } from "../failure.ts";
import { followLog, type LogSource, mergedLines } from "../logs.ts";
import { logFile } from "../processes.ts";
import { processNames } from "../up.ts";
import { durationArgument, existingCluster, newClusterVerb, numberArgument } from "./command.ts";

interface Options {
  readonly name: string;
  readonly follow?: boolean;
  readonly since?: number;
  readonly tail?: number;
  readonly prefix?: boolean;
}

/** `./cox logs`: logs of the given processes, or of all, merged by time. */
export function logsVerb(root: string): Command {
  return newClusterVerb("logs", "the logs of all processes of a cluster, or of those that are named", {
    examples: ["./cox logs", "./cox logs -f kubelet containerd", "./cox logs --since 5m --tail 100 kube-apiserver"],
    files: [".cox/logs/*.log"],
  })
    .argument(
      "[processes...]",
      "etcd, containerd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, coxswain-services",
    )
    .option("-f, --follow", "go on with what is written from now on")
    .option("--since <time>", "only what is newer: 5s, 2m, 3h", durationArgument)
    .option("--tail <lines>", "only the last lines of each log", numberArgument)
    .option("--prefix", "the process's name before each line (default: when there is more than one)")
    .action(async (names: string[], options: Options) => {
      const settings = existingCluster(root, options.name, "logs");
      const folder = join(settings.state, "logs");
      const written = globSync("*.log", { cwd: folder }).map((file) => basename(file, ".log"));
      const known = [...new Set([...processNames(settings), ...written])];
      const unknown = names.find((name) => !known.includes(name));
      if (unknown !== undefined) throw new UsageFailure(`there is no process ${unknown}; one of ${known.join(", ")}`);
      const chosen = names.length > 0 ? names : known.filter((name) => name !== "audit");
      const sources = [...new Set(chosen)]
        .map((name): LogSource => ({ name, file: logFile(settings, name) }))
        .filter(({ file }) => options.follow === true || existsSync(file));
      if (sources.length === 0) throw new UsageFailure(`there is no log of ${chosen.join(", ")}: it was not started`);
      await print(sources, options);
    });
}

async function print(sources: readonly LogSource[], options: Options): Promise<void> {
  const width = Math.max(...sources.map(({ name }) => name.length));
  const withPrefix = options.prefix ?? sources.length > 1;
  // EPIPE: the reader, such as head, has exited.
  process.stdout.on("error", () => process.exit(0));
  const write = async (name: string, text: string): Promise<void> => {
    const line = withPrefix ? `${name.padEnd(width)} | ${text}\n` : `${text}\n`;
    if (!process.stdout.write(line)) await new Promise((resolve) => process.stdout.once("drain", resolve));
  };
  const sinceMs = options.since === undefined ? undefined : Date.now() - options.since;
  const ends = new Map<string, number>();
  for await (const { name, text } of mergedLines(sources, { sinceMs, tail: options.tail, now: Date.now() }, ends))
    await write(name, text);
  if (options.follow) await Promise.all(sources.map((source) => followLog(source, ends.get(source.name) ?? 0, write)));
}
