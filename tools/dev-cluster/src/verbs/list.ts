import type { Command } from "commander";
import { readRecord } from "../cluster-record.ts";
import { runningPid } from "../processes.ts";
import { readRegistry } from "../registry.ts";
import { newSettings, type Settings, stateFolder } from "../settings.ts";
import { table } from "../table.ts";
import { processNames } from "../up.ts";
import { clusterNames, newVerb } from "./command.ts";

/** `./cox list`: the clusters of this clone, and other registered clusters of this machine. */
export function listVerb(root: string): Command {
  return newVerb("list", "the clusters of this clone, and the others on this machine", {
    examples: ["./cox list"],
    files: [".cox/cluster.json, .cox/clusters/*/cluster.json", "/run/coxswain/*.json   clusters of other clones"],
    environment: ["COX_STATE   the folder of the clusters' files, instead of .cox"],
  }).action(() => {
    const rows = clusters(root).map((settings) => [
      settings.name,
      stateOf(settings),
      `https://127.0.0.1:${settings.ports.apiserver}`,
      settings.podCidr,
      settings.serviceCidr,
      settings.state,
    ]);
    if (rows.length === 0) console.log("no cluster was started here; start one with ./cox up");
    else console.log(table([["NAME", "STATE", "API SERVER", "PODS", "SERVICES", "FOLDER"], ...rows]));
  });
}

function clusters(root: string): Settings[] {
  const found = new Map<string, Settings>();
  for (const name of clusterNames(root)) {
    const state = stateFolder(root, name);
    const record = readRecord(state);
    if (record !== undefined) found.set(state, newSettings(root, name, state, record.choices));
  }
  for (const cluster of readRegistry()) {
    if (!found.has(cluster.state)) found.set(cluster.state, newSettings(cluster.root, cluster.name, cluster.state, cluster));
  }
  return [...found.values()];
}

function stateOf(settings: Settings): string {
  const names = processNames(settings);
  const running = names.filter((name) => runningPid(settings, name) !== undefined).length;
  if (running === 0) return "stopped";
  return running === names.length ? "running" : `${running} of ${names.length} run`;
}
