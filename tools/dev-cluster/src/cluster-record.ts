import { readFileSync, renameSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { Failure } from "./failure.ts";
import type { Choices, RequestedChoices } from "./settings.ts";

/** `cluster.json` in the state folder: the decisions of `up`, read by the next `up` and all other commands. */
export interface ClusterRecord {
  /** Settings requested by the user, in this or earlier `up` commands. */
  readonly requested: RequestedChoices;
  /** Resulting settings. */
  readonly choices: Choices;
}

const recordFile = (state: string): string => join(state, "cluster.json");

/** @returns undefined when no cluster was started. @throws Failure when the file is unreadable or damaged. */
export function readRecord(state: string): ClusterRecord | undefined {
  let text: string;
  try {
    text = readFileSync(recordFile(state), "utf8");
  } catch (err) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(err) ?? "")) return undefined;
    throw new Failure(`cannot read ${recordFile(state)}: ${messageOf(err)}`);
  }
  try {
    // Earlier versions wrote `asked` for `requested`.
    const { choices, asked, requested = asked } = JSON.parse(text) as Partial<ClusterRecord> & { asked?: RequestedChoices }; // cast: both fields are checked below
    if (typeof choices === "object" && typeof requested === "object") return { requested, choices };
  } catch {
    // reported below
  }
  throw new Failure(`${recordFile(state)} is damaged; ./cox down --purge, then ./cox up create the cluster again`);
}

/** Replaces the file atomically. */
export function writeRecord(state: string, record: ClusterRecord): void {
  makeFolderSync(state, 0o711);
  const partial = `${recordFile(state)}.new`;
  writeFileSync(partial, `${JSON.stringify(record, undefined, 2)}\n`);
  renameSync(partial, recordFile(state));
}

/** Removes the empty folder of a named cluster, and their common parent when it is empty. */
export function removeEmptyFolder(name: string, state: string): void {
  for (const folder of name === "default" ? [] : [state, dirname(state)]) {
    try {
      rmdirSync(folder);
    } catch {
      return; // not empty: perhaps a new cluster of this name
    }
  }
}
