import { ServerResponse } from "node:http";
import { runMain } from "@coxswain/apimachinery/flags/run-main";
import { configFromFlags } from "@coxswain/apiserver/config";
import { kubeApiserver } from "@coxswain/apiserver/flags";
import { startApiserver } from "@coxswain/apiserver/server";
import { tendHeap } from "@coxswain/apiserver/server/heap";
import type { EtcdClient } from "@coxswain/apiserver/storage/etcd/client";
import type { TxnRequest } from "@coxswain/apiserver/storage/etcd/wire";

/**
 * kube-apiserver that kills itself at a named point of a write: `COX_FAULT=after-txn:20` at the 20th write of a ConfigMap that
 * reaches it. Without the variable it is the normal program.
 */
export type FaultPoint = "before-txn" | "after-txn" | "before-answer" | "before-fan-out";

const [point, times] = (process.env["COX_FAULT"] ?? "").split(":");
let left = Number(times);

function pass(here: FaultPoint): void {
  if (here === point && --left <= 0) process.kill(process.pid, "SIGKILL");
}

const concerned = ({ success }: TxnRequest): boolean => {
  const [first] = success;
  return first !== undefined && "key" in first && first.key.includes("/configmaps/");
};

function aroundEtcd(client: EtcdClient): EtcdClient {
  return {
    ...client,
    async txn(request) {
      if (!concerned(request)) return client.txn(request);
      pass("before-txn");
      const answer = await client.txn(request);
      pass("after-txn");
      return answer;
    },
    openWatch: (turn, handlers) =>
      client.openWatch(turn, {
        ...handlers,
        message(message) {
          if (message.includes("/configmaps/")) pass("before-fan-out");
          handlers.message(message);
        },
      }),
  };
}

const { writeHead } = ServerResponse.prototype;
ServerResponse.prototype.writeHead = function (this: ServerResponse, ...args: unknown[]) {
  if (this.req.method !== "GET" && this.req.url?.includes("/configmaps")) pass("before-answer");
  return (writeHead as (...all: unknown[]) => ServerResponse).apply(this, args);
} as typeof writeHead;

await runMain(kubeApiserver, async (flags, { log, signal, featureGates }) => {
  const server = await startApiserver(configFromFlags(flags), { log, featureGates, aroundEtcd });
  tendHeap(server);
  const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  await Promise.race([stopped, server.started.then(() => stopped)]);
  await server.stop();
});
