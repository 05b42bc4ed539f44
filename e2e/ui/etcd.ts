/** Writes objects into the storage of a test server as they are, with times and uids of the test's choice, many at a time. */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { TestServer } from "@coxswain/apiserver/testing/start-test-server";

export interface StoredObject {
  /** Below the prefix: `pods`, `deployments.apps` is `deployments`. */
  readonly folder: string;
  readonly object: KubeObject;
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");
/** etcd refuses larger transactions. */
const mostInTransaction = 100;

export async function store({ etcdEndpoint, prefix }: TestServer, objects: readonly StoredObject[]): Promise<void> {
  for (let at = 0; at < objects.length; at += mostInTransaction) {
    const success = objects.slice(at, at + mostInTransaction).map(({ folder, object }) => {
      const { namespace, name } = object.metadata;
      const key = [prefix, folder, ...(namespace === undefined ? [] : [namespace]), name].join("/");
      return { requestPut: { key: base64(key), value: base64(JSON.stringify(object)) } };
    });
    const response = await fetch(`${etcdEndpoint}/v3/kv/txn`, { method: "POST", body: JSON.stringify({ success }) });
    if (!response.ok) throw new Error(`etcd: ${response.status} ${await response.text()}`);
  }
}
