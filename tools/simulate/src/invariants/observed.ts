import type { MemoryEtcd } from "@coxswain/testing/store/memory-etcd";

/** Observes what API servers send, before it reaches clients. */
export interface Observed {
  /** A response to an executed write. @param sent the request's body */
  answered(method: string, url: string, status: number, sent: string, body: Buffer | string): void;
  /** A watch has started. @returns a function that receives each chunk */
  watching(url: string): (chunk: Buffer | string) => void;
}

const versionOf = (text: string): number => Number(/"resourceVersion":"(\d+)"/.exec(text)?.[1] ?? 0);

/** Watches of these resources are compared with every write; of others only the order of events is checked. */
const folders: Readonly<Record<string, string>> = {
  "/api/v1/pods": "/registry/pods/",
  "/apis/apps/v1/replicasets": "/registry/replicasets/",
  "/apis/apps/v1/deployments": "/registry/deployments/",
  "/apis/batch/v1/jobs": "/registry/jobs/",
};

/**
 * Checks that each acknowledged write is in the store, and that watches report every change, in order, with no bookmark before a change of an earlier revision.
 */
export function observe(etcd: MemoryEtcd, fail: (message: string) => void): Observed {
  /** By revision of a write: the mod revisions of its keys before it. */
  const written = new Map<number, readonly number[]>();
  const changes = new Map<string, number[]>(Object.values(folders).map((folder) => [folder, []]));
  const begin = etcd.revision;
  etcd.onWrite(({ revision, events }) => {
    written.set(
      revision,
      events.map(({ prevKv }) => prevKv?.modRevision ?? 0),
    );
    for (const [folder, revisions] of changes) if (events.some(({ kv }) => kv.key.startsWith(folder))) revisions.push(revision);
  });
  return {
    answered(method, url, status, sent, body) {
      if (method === "GET" || method === "DELETE" || status >= 300 || url.includes("/binding") || url.includes("/eviction"))
        return;
      const version = versionOf(body.toString());
      if (version > begin && !written.has(version))
        fail(`${method} ${url} was acknowledged with version ${version}, which was never written`);
      if (method !== "PUT") return;
      const read = versionOf(sent);
      const replaced = written.get(version);
      if (read > 0 && version !== read && replaced?.includes(read) === false)
        fail(`PUT ${url} of version ${read} has replaced version ${replaced.join()}, which its writer had not seen`);
    },
    watching(url) {
      const { pathname, searchParams } = new URL(url, "http://simulated");
      const from = Number(searchParams.get("resourceVersion") ?? 0);
      const isWhole = !searchParams.has("fieldSelector") && !searchParams.has("labelSelector");
      const revisions = isWhole ? changes.get(folders[pathname] ?? "") : undefined;
      let last = from;
      let next = revisions?.findIndex((revision) => revision > from) ?? 0;
      if (next < 0) next = revisions?.length ?? 0;
      const take = (line: string): void => {
        const version = versionOf(line);
        const isBookmark = line.startsWith('{"type":"BOOKMARK"');
        if (line.startsWith('{"type":"ERROR"') || from < begin) return;
        if (version < last || (version === last && !isBookmark)) fail(`the watch ${url} reports ${version} after ${last}`);
        last = version;
        if (revisions === undefined) return;
        const expected = revisions[next] ?? Number.POSITIVE_INFINITY;
        if (isBookmark) {
          if (expected <= version) fail(`the watch ${url} has a bookmark at ${version} before it showed ${expected}`);
          return;
        }
        if (version !== expected) fail(`the watch ${url} reports ${version}, ${expected} is next`);
        next++;
      };
      let rest = "";
      return (chunk) => {
        const lines = (rest + chunk.toString()).split("\n");
        rest = lines.pop()!;
        for (const line of lines) if (line !== "") take(line);
      };
    },
  };
}
