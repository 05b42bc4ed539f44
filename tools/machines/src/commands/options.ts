/** Flags and exit handling that all commands share. */

import { readFileSync } from "node:fs";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";
import { Command, InvalidArgumentError } from "commander";
import { type Documents, readDocuments } from "../config/documents.ts";
import { UsageFailure } from "../failure.ts";

/** The archive of the running program. */
export interface Archive {
  readonly home: string;
}

export interface CommonFlags {
  readonly dryRun: boolean;
  readonly skipPhases: readonly string[];
  readonly ignorePreflightErrors: readonly string[];
  readonly config?: string;
}

/** Comma-separated and repeatable. @param before the values of earlier occurrences of the option */
export const list = (text: string, before: readonly string[] = []): string[] => [
  ...before,
  ...text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== ""),
];

/** @returns milliseconds */
export function duration(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms < 0) throw new InvalidArgumentError("Expected a duration such as 30s, 5m or 24h0m0s.");
  return ms;
}

/** @throws InvalidArgumentError unless the text is 1 to 65535 in digits */
export function port(text: string): number {
  const value = Number(text);
  if (!/^\d{1,5}$/.test(text) || value < 1 || value > 65535) throw new InvalidArgumentError("Expected a port from 1 to 65535.");
  return value;
}

export function newCommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .helpOption("-h, --help", "show this")
    .configureHelp({ helpWidth: 120 })
    .showSuggestionAfterError(true)
    .allowExcessArguments(false);
}

export const withDryRun = (command: Command): Command =>
  command.option("--dry-run", "say what would be done, and change nothing", false);

/** Adds the flags of commands that set up a machine. */
export const withSetUpFlags = (command: Command): Command =>
  withDryRun(command)
    .option("--config <file>", "a configuration file in kubeadm's form (kubeadm.k8s.io/v1beta3)")
    .option("--skip-phases <names>", "phases to leave out, comma separated", list, [])
    .option("--ignore-preflight-errors <names>", "checks whose errors are warnings, comma separated; all: every one", list, []);

/** @throws UsageFailure */
export function documentsOf(file: string | undefined): Documents {
  if (file === undefined) return {};
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (err) {
    throw new UsageFailure(`cannot read ${file}: ${messageOf(err)}`);
  }
  return readDocuments(text, file);
}

/**
 * @param what describes the conflict and the remedy
 * @param flags by name; undefined: not given
 * @throws UsageFailure
 */
export function refuseBeside(what: string, flags: Readonly<Record<string, unknown>>): void {
  const given = Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const words = given.map((name) => (name === "endpoint" ? name : `--${name}`));
  if (words.length > 0) throw new UsageFailure(`${words.join(", ")} cannot be combined with ${what}`);
}

/** @throws InvalidArgumentError unless the text is 1 to 999999 in digits */
export function count(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError("Expected a whole number of at least 1.");
  return Number(text);
}

/** Columns as wide as their widest cell. */
export function printTable(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("   ")
        .trimEnd(),
    );
}
