import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Connect } from "@coxswain/apimachinery/transport/connect";
import { configFromFlags } from "@coxswain/apiserver/config";
import { kubeApiserver } from "@coxswain/apiserver/flags";
import { type RunningApiserver, startApiserver } from "@coxswain/apiserver/server";
import type { EtcdClient } from "@coxswain/apiserver/storage/etcd/client";
import { InProcessListener, nominalPort } from "./listener.ts";
import type { Requests } from "./requests.ts";
import type { Scratch } from "./scratch.ts";

export interface ApiServerOptions {
  readonly scratch: Scratch;
  /** undefined: the flags name the etcd servers. */
  readonly etcdClient: (() => EtcdClient) | undefined;
  readonly flags: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly connect: Connect;
  readonly requests: Requests;
}

export interface InProcessApiServer {
  readonly server: RunningApiserver;
  readonly listener: InProcessListener;
}

/** The complete kube-apiserver without a socket: requests come through `listener`. It may not be ready yet when this resolves. */
export async function startInProcessApiServer(options: ApiServerOptions): Promise<InProcessApiServer> {
  const { scratch, clock, log, connect, etcdClient } = options;
  const usual = [
    "--etcd-servers=http://127.0.0.1:2379",
    "--advertise-address=192.0.2.1",
    `--secure-port=${nominalPort}`,
    `--token-auth-file=${scratch.tokenFile}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${scratch.serviceAccountKey}`,
    `--service-account-signing-key-file=${scratch.serviceAccountKey}`,
    "--authorization-mode=RBAC",
    "--allow-privileged=true",
    // Host names of fake nodes cannot be resolved, or belong to other machines.
    "--kubelet-preferred-address-types=InternalIP",
    "--service-cluster-ip-range=10.0.0.0/16",
    // The in-memory store needs no compact encoding, and JSON is readable in messages of failed assertions.
    "--storage-media-type=application/json",
    "--etcd-count-metric-poll-period=0",
    "--etcd-db-metric-poll-interval=0",
    "--enable-priority-and-fairness=false",
    "--profiling=false",
  ];
  const nameOf = (flag: string): string => flag.split("=")[0] as string;
  const given = new Set(options.flags.map(nameOf));
  const { values } = parseFlags(kubeApiserver.flags, [...usual.filter((flag) => !given.has(nameOf(flag))), ...options.flags]);
  let listener: InProcessListener | undefined;
  const server = await startApiserver(
    { ...configFromFlags(values), flags: values },
    {
      log,
      clock,
      featureGates: newFeatureGates(kubeApiserver.name, values["feature-gates"]),
      etcdClient,
      connect,
      processMetrics: false,
      listen: async (_, handler) => {
        listener = new InProcessListener(handler, options.requests);
        return listener;
      },
    },
  );
  return { server, listener: listener as InProcessListener };
}
