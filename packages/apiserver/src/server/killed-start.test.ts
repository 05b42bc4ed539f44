/** A server that is killed during the first start leaves a part of the initial objects; the next one completes them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EtcdError } from "../storage/etcd/errors.ts";
import { launchTestServer, startTestServer } from "../testing/start-test-server.ts";

/** Killed after the first write to a key that contains this. */
for (const key of [
  "/apiregistration.k8s.io/apiservices/",
  "/namespaces/kube-system",
  "/ranges/serviceips", // the address of the service kubernetes is allocated, the service is not written
  "/services/specs/default/kubernetes",
  "/clusterroles/system:basic-user",
  "/flowschemas/exempt",
]) {
  test(`a server that was killed after its first write to ${key} is followed by one that becomes ready`, async (t) => {
    const killed = Promise.withResolvers<void>();
    let isAlive = true;
    const first = await launchTestServer(t, [], undefined, (client) => {
      const ifAlive = <A extends unknown[], R>(call: (...args: A) => Promise<R>) => {
        return async (...args: A): Promise<R> => {
          if (!isAlive) throw new EtcdError("unavailable", "killed");
          return call(...args);
        };
      };
      return {
        ...client,
        range: ifAlive(client.range),
        put: ifAlive(client.put),
        grantLease: ifAlive(client.grantLease),
        txn: ifAlive(async (request) => {
          const answer = await client.txn(request);
          if (request.success.some((op) => "key" in op && op.key.includes(key))) {
            isAlive = false;
            killed.resolve();
          }
          return answer;
        }),
      };
    });
    await killed.promise;
    await first.stop();
    const second = await startTestServer(t, [`--etcd-prefix=${first.prefix}`]);
    assert.equal((await second.request("GET", "/api/v1/namespaces/default/services/kubernetes")).body.spec.clusterIP, "10.0.0.1");
  });
}
