import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newLeases } from "@coxswain/apiserver/storage/etcd/leases";
import { EtcdStore } from "@coxswain/apiserver/storage/etcd/store";
import { newObjectCodec } from "@coxswain/apiserver/storage/object-codec";
import { openStorage } from "@coxswain/apiserver/storage/open";
import { runStorageSuite, type StorageUnderTest } from "@coxswain/apiserver/storage/suite";
import { suiteResource, unlimitedEntries } from "@coxswain/apiserver/storage/testing";
import { DirectEtcdClient } from "./direct-client.ts";
import { MemoryEtcd } from "./memory-etcd.ts";

/** Runs the suite of the etcd storage with the in-memory store and with a copy of it. */
for (const { over, make } of [
  { over: "memory", make: () => new MemoryEtcd() },
  { over: "a fork of memory", make: () => new MemoryEtcd([{ key: "/elsewhere", value: Buffer.from("x") }]).fork() },
]) {
  runStorageSuite(`store over ${over}`, async (t) => storeOver(t, make()));
  runStorageSuite(`watch cache over ${over}`, async (t) => {
    const etcd = make();
    const { storage: behind, compact } = storeOver(t, etcd);
    const set = await openStorage({
      etcd: { servers: ["memory"], client: () => new DirectEtcdClient(etcd, realClock) },
      resources: [suiteResource],
      readTimeoutMs: 300,
      clock: realClock,
      log: discardLogger,
    });
    t.after(() => set.stop());
    await set.whenReady();
    return { storage: set.for(suiteResource), behind, compact };
  });
}

function storeOver(t: { after(fn: () => void): void }, etcd: MemoryEtcd): StorageUnderTest {
  const client = new DirectEtcdClient(etcd, realClock);
  t.after(() => client.close());
  const storage = new EtcdStore({
    turns: new Turns(),
    client,
    codec: newObjectCodec(suiteResource, "application/vnd.kubernetes.protobuf", unlimitedEntries()),
    leases: newLeases({ client, clock: realClock }),
    etcdPrefix: "/registry",
    clock: realClock,
    log: discardLogger,
  });
  const compact = async (): Promise<number> => {
    const { revision } = etcd;
    etcd.compact(revision);
    return revision;
  };
  return { storage, behind: storage, compact };
}
