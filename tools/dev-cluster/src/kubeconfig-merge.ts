import { chownSync, copyFileSync, existsSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { type Document, isMap, isSeq, parseDocument, type YAMLMap, YAMLSeq } from "yaml";
import { Failure } from "./failure.ts";

interface Named {
  readonly name: string;
}

/** A kubeconfig with one cluster, user and context. */
export interface Kubeconfig {
  readonly apiVersion: "v1";
  readonly kind: "Config";
  readonly clusters: readonly [Named & { readonly cluster: Readonly<Record<string, unknown>> }];
  readonly users: readonly [Named & { readonly user: unknown }];
  readonly contexts: readonly [Named & { readonly context: { readonly cluster: string; readonly user: string } }];
  readonly "current-context": string;
}

/** Extension that marks clusters added by this tool and names their state folder. */
const extensionName = "coxswain";

/** The administrator's kubeconfig with cluster, user and context renamed. @param state the cluster's state folder */
export function newKubeconfig(admin: Kubeconfig, name: string, state: string): Kubeconfig {
  const extensions = [{ name: extensionName, extension: { apiVersion: "coxswain/v1", kind: "ClusterFolder", folder: state } }];
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { ...admin.clusters[0].cluster, extensions } }],
    users: [{ name, user: admin.users[0].user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  };
}

/** The file that `kubectl config` writes to. Source: client-go tools/clientcmd, PathOptions.GetDefaultFilename */
export function targetFile(env: NodeJS.ProcessEnv): string {
  const listed = (env["KUBECONFIG"] ?? "").split(":").find((path) => path !== "");
  if (listed !== undefined) return listed;
  const home = env["HOME"] || homedir();
  if (home === "" || home === "/nonexistent") throw new Failure("HOME is not set; name the file to merge into with KUBECONFIG");
  return join(home, ".kube", "config");
}

/**
 * Pure: merges our entries into a user's kubeconfig; comments and formatting of the rest are preserved.
 * @param text empty when the file does not exist
 * @throws Failure when the text is not a kubeconfig, or has an entry of the same name that was not added by this tool
 */
export function merged(text: string, ours: Kubeconfig, file: string): string {
  const document = parseDocument(text);
  if (document.errors.length > 0) throw new Failure(`${file} is not valid YAML: ${document.errors[0]?.message.split("\n")[0]}`);
  if (document.contents === null) document.contents = document.createNode({ apiVersion: "v1", kind: "Config" }) as never; // cast: the type of a document's contents follows its source
  if (!isMap(document.contents)) throw new Failure(`${file} is not a kubeconfig`);
  const { name } = ours.contexts[0];
  const existing = (["clusters", "users", "contexts"] as const).filter((key) => entryOf(document, key, name, file) !== undefined);
  if (existing.length > 0 && folderOf(entryOf(document, "clusters", name, file)) !== folderOf(ours.clusters[0])) {
    throw new Failure(
      `${file} has ${existing.join(" and ")} named ${name} that this cluster did not put there; choose another with --context <name>`,
    );
  }
  for (const key of ["clusters", "users", "contexts"] as const) put(document, key, ours[key][0]);
  if (!document.get("current-context")) document.set("current-context", name);
  return document.toString({ lineWidth: 0 });
}

function entryOf(document: Document, key: string, name: string, file: string): unknown {
  const list = document.get(key);
  if (list === undefined || list === null) return undefined;
  if (!isSeq(list)) throw new Failure(`${file} is not a kubeconfig: ${key} is not a list`);
  return (list as YAMLSeq<YAMLMap>).items.find((item) => isMap(item) && item.get("name") === name)?.toJSON(); // cast: checked to be a sequence
}

function folderOf(cluster: unknown): unknown {
  const extensions = (cluster as { cluster?: { extensions?: { name: string; extension?: { folder?: string } }[] } } | undefined) // cast: every field is optional
    ?.cluster?.extensions;
  return extensions?.find?.((each) => each.name === extensionName)?.extension?.folder;
}

function put(document: Document, key: string, entry: Named): void {
  if (!isSeq(document.get(key))) document.set(key, new YAMLSeq());
  const list = document.get(key) as YAMLSeq<YAMLMap>; // cast: checked to be a sequence
  const node = document.createNode(entry) as YAMLMap; // cast: made of an object
  const at = list.items.findIndex((item) => isMap(item) && item.get("name") === entry.name);
  if (at === -1) list.add(node);
  else list.items[at] = node;
}

/** Merges into a file atomically, preserving its owner. @returns the path of the backup, if any, and whether the file changed. */
export function mergeInto(file: string, ours: Kubeconfig, now = new Date()): { backup: string | undefined; changed: boolean } {
  const target = existsSync(file) ? realpathSync(file) : file;
  const before = existsSync(target) ? readFileSync(target, "utf8") : undefined;
  const after = merged(before ?? "", ours, file);
  if (after === before) return { backup: undefined, changed: false };
  makeFolderSync(dirname(target), 0o700);
  let backup: string | undefined;
  if (before !== undefined) {
    backup = `${target}.before-cox-${now.toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
    copyFileSync(target, backup);
  }
  const partial = `${target}.cox-new`;
  writeFileSync(partial, after, { mode: 0o600 });
  const { uid, gid } = statSync(before === undefined ? dirname(target) : target);
  if (process.getuid?.() === 0) chownSync(partial, uid, gid);
  renameSync(partial, target);
  return { backup, changed: true };
}
