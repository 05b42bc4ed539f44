import assert from "node:assert/strict";
import { test } from "node:test";
import type { EtcdClient } from "./client.ts";
import { etcdWarning } from "./health.ts";

for (const { name, errors, want } of [
  {
    name: "full",
    errors: ["memberID:8211f1d0f64f3269 alarm:NOSPACE "],
    want: "no space left, all writes but deletions are refused",
  },
  { name: "well", errors: [], want: undefined },
]) {
  test(`a member that does not answer hides nothing of an etcd that is ${name}`, async () => {
    const silent = new Promise<never>(() => undefined);
    const status = (server: number) => (server === 0 ? silent : Promise.resolve({ errors }));
    const client = { servers: ["http://a", "http://b"], status } as unknown as EtcdClient;
    assert.equal(await etcdWarning([client], 20), want);
  });
}
