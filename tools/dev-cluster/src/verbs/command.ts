import { existsSync, globSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";
import { Command, InvalidArgumentError, Option } from "commander";
import { Failure } from "../failure.ts";
import { checkOwner } from "../preflight.ts";
import { readSettings } from "../read-settings.ts";
import { type Settings, stateFolder } from "../settings.ts";

/** Contents of `--help` besides the flags. */
interface HelpText {
  readonly examples: readonly string[];
  readonly files?: readonly string[];
  readonly environment?: readonly string[];
  readonly notes?: readonly string[];
}

/** A command of `./cox` with uniform help. */
export function newVerb(name: string, summary: string, help: HelpText): Command {
  const block = (title: string, lines: readonly string[] = []): string =>
    lines.length === 0 ? "" : `\n${title}:\n${lines.map((line) => `  ${line}\n`).join("")}`;
  return new Command(name)
    .description(summary)
    .helpOption("-h, --help", "show this")
    .configureHelp({ helpWidth: 120 })
    .showSuggestionAfterError(true)
    .allowExcessArguments(false)
    .addHelpText(
      "after",
      `${block("Notes", help.notes)}${block("Examples", help.examples)}${block("Files", help.files)}${block("Environment", help.environment)}`.trimEnd(),
    );
}

/** Like `newVerb`, for a command on one cluster; adds `--name`. */
export const newClusterVerb = (name: string, summary: string, help: HelpText): Command =>
  newVerb(name, summary, { ...help, environment: [...(help.environment ?? []), ...stateVariable] }).option(
    "--name <name>",
    "which cluster",
    "default",
  );

const stateVariable = ["COX_STATE   the folder of the clusters' files, instead of .cox"];

/** Parses a duration flag: `30s`, `5m`. @returns milliseconds */
export function durationArgument(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms < 0) throw new InvalidArgumentError("Expected a duration such as 30s, 5m or 1h.");
  return ms;
}

/** @throws InvalidArgumentError, from which commander makes the error line */
export function numberArgument(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("Expected a whole number.");
  return Number(text);
}

export const waitOption = (): Option =>
  new Option("--wait <time>", "how long to wait for another ./cox up or down of this cluster; 0 fails at once")
    .argParser(durationArgument)
    .default(600_000, "10m");

/** The `--name` flag to append to suggested commands; empty for the default cluster. */
export const nameFlag = (name: string): string => (name === "default" ? "" : ` --name ${name}`);

/**
 * The settings of a cluster created by `up`.
 * @throws Failure when it does not exist or belongs to another user
 */
export function existingCluster(root: string, name: string, verb: string): Settings {
  const state = stateFolder(root, name);
  checkOwner(state, `${verb}${nameFlag(name)}`);
  if (!existsSync(join(state, "cluster.json"))) throw noCluster(root, name, "was started");
  return readSettings(root, process.env, name);
}

/** Names of the clusters of this clone that have a record, running or not; the default one first, the others sorted. */
export const clusterNames = (root: string): string[] =>
  globSync(["cluster.json", "clusters/*/cluster.json"], { cwd: stateFolder(root, "default") })
    .sort()
    .map((file) => (file === "cluster.json" ? "default" : basename(dirname(file))));

/** The error for a verb that needs the cluster; it names the clone's other clusters, since a forgotten `--name` is likely then. */
export function noCluster(root: string, name: string, lacks: "was started" | "is running"): Failure {
  const others = clusterNames(root).filter((other) => other !== name);
  const choose = others.length === 0 ? "" : `, or add --name for one of ${others.join(", ")}`;
  return new Failure(
    `no cluster${name === "default" ? "" : ` ${name}`} ${lacks} here; start one with ./cox up${nameFlag(name)}${choose}`,
  );
}
