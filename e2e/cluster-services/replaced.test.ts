/**
 * Each part of the real process coxswain-services is disabled in turn, and the others work: the part's rules, files and objects are
 * not created again. The part `services` is replaced by upstream's kube-proxy. In network namespaces.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PersistentVolumeClaim, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import {
  apiServices,
  endpointSlices,
  ingressClasses,
  ingresses,
  persistentVolumeClaims,
  secrets,
  services,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { selectedNode, storageProvisioner } from "@coxswain/apimachinery/volumes/annotations";
import { provisioner } from "@coxswain/cluster-services/local-volumes/names";
import { parts } from "@coxswain/cluster-services/parts";
import { rightsOf } from "@coxswain/cluster-services/rights";
import { silenceMs } from "@coxswain/cluster-services/testing/namespace-agent";
import { connectPair, needsRoot, newNamespace } from "@coxswain/cluster-services/testing/namespaces";
import { isRefused, readAuditLog, summaryOf } from "../framework/audit.ts";
import { KillableMachine, kubeconfigOf, userOfNode } from "./killed-process.ts";
import { addNodeLink, nodeAddress, startOneNodeCluster } from "./nodes.ts";
import { type RoleView, unusedRights } from "./used-rights.ts";

const long = process.env["COX_TEST_LONG"] === undefined && "long: only with ./cox test --long";
/** Upstream's kube-proxy 1.20 or later, of the same architecture. */
const kubeProxy = process.env["COX_UPSTREAM_KUBE_PROXY"];
const podAddress = "10.77.0.11";
const poolAddress = "192.168.77.50";
const nodePort = 30080;

/**
 * A node with one pod, which answers `pod` on port 8080, and the Service `web` in front of it.
 * @param chosen parts that get their permissions
 */
async function startNode(t: TestContext, chosen = parts, apiServerFlags: readonly string[] = []) {
  const { folder, cluster, kubeconfig } = await startOneNodeCluster(t, "replaced", chosen, { apiServerFlags });
  const { client } = cluster;
  writeFileSync(join(folder, "proxy.kubeconfig"), kubeconfigOf(kubeconfig, "system:kube-proxy"));

  const machine = await KillableMachine.make(t, join(folder, "n1"), join(folder, "api"), []);
  const { namespace } = machine;
  await namespace.request({ op: "set", file: "/proc/sys/net/ipv4/ip_forward", value: "1" });
  const pod = await newNamespace(t);
  await connectPair(namespace, "pod0", pod, "eth0");
  await pod.ip(`address add ${podAddress}/24 dev eth0`);
  await pod.ip("route add default via 10.77.0.254");
  await namespace.ip("address add 10.77.0.254/32 dev pod0");
  await namespace.ip(`route add ${podAddress}/32 dev pod0`);
  await pod.request({ op: "listen", name: "pod", port: 8080 });
  await addNodeLink(namespace);
  await namespace.ip("route add default via 192.168.77.254 dev eth0");
  const web = await client.create<Service>(services, {
    metadata: { namespace: "default", name: "web" },
    spec: { type: "NodePort", ports: [{ name: "http", port: 80, protocol: "TCP", nodePort }] },
  });
  await client.create<EndpointSlice>(endpointSlices, {
    metadata: { namespace: "default", name: "web", labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    endpoints: [{ addresses: [podAddress], nodeName: "n1", conditions: { ready: true } }],
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  });
  return { folder, client, machine, clusterIp: web.spec.clusterIP as string };
}

type TestNode = Awaited<ReturnType<typeof startNode>>;

const answers = async ({ machine }: TestNode, host: string, port: number): Promise<boolean> =>
  (await machine.namespace.ask({ protocol: "tcp", host, port, timeoutMs: silenceMs })).every((answer) =>
    answer.startsWith("pod "),
  );

/** What is wrong with the Service `web` and the kernel's chains. */
async function wrongRules(node: TestNode, present: string, absent: string): Promise<string[]> {
  const rules = await node.machine.namespace.run("iptables-save", []);
  return [
    ...((await answers(node, node.clusterIp, 80)) ? [] : ["the cluster IP does not answer"]),
    ...((await answers(node, nodeAddress, nodePort)) ? [] : ["the node port does not answer"]),
    ...(rules.includes(present) ? [] : [`no chain ${present}`]),
    ...(rules.includes(absent) ? [`chains of ${absent} are left`] : []),
  ];
}

async function becomesEmpty(list: () => Promise<string[]>, output: () => string): Promise<void> {
  let last: string[] = [];
  const isEmpty = async (): Promise<boolean> => {
    last = await list();
    return last.length === 0;
  };
  await waitFor(isEmpty, { timeoutMs: 60_000 }).catch((cause: unknown) => {
    throw new Error(`${last.join("\n")}\n${output().slice(-6_000)}`, { cause });
  });
}

test("upstream's kube-proxy takes the place of the part services, and gives it back", {
  skip: needsRoot || long || (kubeProxy === undefined && "COX_UPSTREAM_KUBE_PROXY names no kube-proxy"),
}, async (t) => {
  const node = await startNode(t);
  const { machine, folder } = node;
  const others = ["--disable=metrics-api,services"];
  machine.start(["--disable=metrics-api"]);
  await becomesEmpty(
    () => wrongRules(node, ":COX-SERVICES ", ":KUBE-SERVICES "),
    () => machine.output,
  );
  await machine.stop();
  machine.start(others);
  await waitFor(async () => !(await machine.namespace.run("iptables-save", [])).includes(":COX-SERVICES "));
  assert.equal(await answers(node, node.clusterIp, 80), false, "nothing else serves it");

  let output = "";
  const run = (...flags: string[]) => {
    const inNamespaces = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run && exec "$@"', "sh"];
    const child = spawn(
      "nsenter",
      [`--net=/proc/${machine.namespace.pid}/ns/net`, ...inNamespaces, kubeProxy as string, ...flags],
      {
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    child.stderr.on("data", (text: Buffer) => {
      output = (output + text.toString()).slice(-20_000);
    });
    return child;
  };
  const proxy = run(
    `--kubeconfig=${join(folder, "proxy.kubeconfig")}`,
    ...["--hostname-override=n1", "--proxy-mode=iptables", "--cluster-cidr=10.77.0.0/16"],
    ...["--conntrack-max-per-core=0", "--conntrack-min=0"], // limits of the machine
  );
  t.after(() => proxy.kill("SIGKILL"));
  await becomesEmpty(
    () => wrongRules(node, ":KUBE-SERVICES ", ":COX-SERVICES "),
    () => output,
  );
  const [name] = await machine.namespace.request({
    ...{ op: "resolve", server: `${nodeAddress}:10053`, host: "web.default.svc.cluster.local" },
  });
  assert.equal(name, node.clusterIp, "the part dns answers beside it");

  const ended = once(proxy, "exit");
  proxy.kill("SIGTERM");
  await ended;
  await once(run("--cleanup"), "exit");
  await machine.stop();
  machine.start(["--disable=metrics-api"]);
  await becomesEmpty(
    () => wrongRules(node, ":COX-SERVICES ", ":KUBE-SVC-"),
    () => machine.output,
  );
  await machine.stop();
});

/** A part, by what shows that it works on the node. */
interface Trait {
  /** Asked anew after each start. @param round its number */
  works(node: TestNode, round: number): Promise<boolean>;
  /** Takes away what stays when the part is off: what belongs to the cluster. */
  readonly objects?: readonly (readonly [ResourceRef, { name: string; namespace?: string }])[];
}

const listens = async ({ machine }: TestNode, ...addresses: string[]): Promise<boolean> => {
  const sockets = (await machine.namespace.run("ss", ["-Hltun"])).split("\n").map((line) => line.trim().split(/\s+/)[4]);
  return addresses.every((address) => sockets.includes(address));
};

const exist = async ({ client }: TestNode, objects: NonNullable<Trait["objects"]>): Promise<boolean> => {
  const found = await Promise.all(
    objects.map(([ref, key]) =>
      client.get(ref, key).then(
        () => true,
        (err: unknown) => {
          if (isNotFound(err)) return false;
          throw err;
        },
      ),
    ),
  );
  return found.some(Boolean);
};

const volume = async ({ client, machine }: TestNode, round: number): Promise<boolean> => {
  const { metadata } = await client.get(persistentVolumeClaims, { namespace: "default", name: `claim-${round}` });
  return machine.volumeFolders().includes(`pvc-${metadata.uid}`);
};

const traits: Readonly<Record<string, Trait>> = {
  "api-proxy": { works: (node) => listens(node, "127.0.0.1:6444") },
  "pod-network": {
    works: async ({ machine }) =>
      existsSync(join(machine.folder, "cni", "10-coxswain.conflist")) &&
      (await machine.namespace.run("iptables-save", [])).includes(":COX-NET-"),
  },
  services: { works: (node) => answers(node, node.clusterIp, 80) },
  dns: {
    async works(node) {
      const question = { op: "resolve", server: `${nodeAddress}:10053`, host: "web.default.svc.cluster.local" } as const;
      const [address] = await node.machine.namespace.request(question);
      return address === node.clusterIp;
    },
    objects: [[services, { namespace: "kube-system", name: "kube-dns" }]],
  },
  "metrics-api": {
    works: (node) => listens(node, `${nodeAddress}:10262`),
    objects: [
      [apiServices, { name: "v1beta1.metrics.k8s.io" }],
      [services, { namespace: "kube-system", name: "coxswain-metrics" }],
    ],
  },
  "local-volumes": { works: volume, objects: [[storageClasses, { name: "local" }]] },
  ingress: { works: (node) => listens(node, "*:80", "*:443"), objects: [[ingressClasses, { name: "coxswain" }]] },
  "load-balancers": {
    async works({ client }, round) {
      const { status } = await client.get<Service>(services, { namespace: "default", name: `lb-${round}` });
      return (status?.loadBalancer?.ingress?.length ?? 0) > 0;
    },
  },
  // That of the first Service, whose status stays whoever has written it.
  "load-balancer-addresses": {
    works: async ({ machine }) => (await machine.namespace.ip("address show dev eth0")).includes(`inet ${poolAddress}/32`),
  },
};

/** Starts the process, with a claim and a Service of type LoadBalancer of their own. */
async function startProcess({ client, machine, folder }: TestNode, round: number, ...flags: string[]): Promise<void> {
  writeFileSync(join(folder, "servers"), "127.0.0.1:6443\n");
  await client.create<Service>(services, {
    metadata: { namespace: "default", name: `lb-${round}` },
    spec: { type: "LoadBalancer", ports: [{ port: 8000, protocol: "TCP" }] },
  });
  await client.create<PersistentVolumeClaim>(persistentVolumeClaims, {
    metadata: {
      ...{ namespace: "default", name: `claim-${round}` },
      annotations: { [storageProvisioner]: provisioner, [selectedNode]: "n1" },
    },
    spec: { accessModes: ["ReadWriteOnce"], storageClassName: "local", resources: { requests: { storage: "1Mi" } } },
  });
  machine.start([
    `--load-balancer-pool=${poolAddress}-192.168.77.79`,
    `--api-proxy-servers-file=${join(folder, "servers")}`,
    ...flags,
  ]);
}

test("each part can be left out: the others work, and nothing of it is left or made again", {
  skip: needsRoot || long,
}, async (t) => {
  assert.deepEqual(Object.keys(traits).toSorted(), parts.map(({ name }) => name).toSorted());
  const node = await startNode(t);
  const { client, machine } = node;
  /** Parts that do not work, of all but one. */
  const idle = async (round: number, but?: string): Promise<string[]> => {
    const names: string[] = [];
    for (const [name, trait] of Object.entries(traits)) if (name !== but && !(await trait.works(node, round))) names.push(name);
    return names;
  };
  await startProcess(node, 0, "--enable=api-proxy,ingress");
  await becomesEmpty(
    () => idle(0),
    () => machine.output,
  );
  await machine.stop();
  for (const [index, [name, { works, objects = [] }]] of Object.entries(traits).entries()) {
    await t.test(`without ${name}`, async () => {
      for (const [ref, key] of objects) await client.delete(ref, key);
      const enabled = ["api-proxy", "ingress"].filter((part) => part !== name).join();
      await startProcess(node, index + 1, `--enable=${enabled}`, ...(enabled.includes(",") ? [`--disable=${name}`] : []));
      await becomesEmpty(
        () => idle(index + 1, name),
        () => machine.output,
      );
      assert.equal(await works(node, index + 1), false, `${name} works`);
      assert.equal(await exist(node, objects), false, `${name} has made its objects`);
      await machine.stop();
    });
  }
});

/** With a certificate, so that all rights of the part are used. */
async function createIngress({ client }: TestNode): Promise<void> {
  const metadata = { namespace: "default", name: "web" };
  await client.create<KubeObject>(secrets, { metadata, type: "Opaque" } as KubeObject);
  const backend = { service: { name: "web", port: { number: 80 } } };
  await client.create<Ingress>(ingresses, {
    metadata,
    spec: {
      tls: [{ hosts: ["web.example.com"], secretName: "web" }],
      rules: [{ host: "web.example.com", http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }],
    },
  });
}

/** Those of a part alone that has a pool: it looks for pods' host ports only where Services have the nodes' addresses. */
const unread: Readonly<Record<string, readonly string[]>> = { "load-balancer-addresses": ["list pods", "watch pods"] };
/** Watches are in the log when they begin. */
const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata" }],
};

test("each part works alone with the rights that are its own, and reads all that they let it read", {
  skip: needsRoot || long,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-alone-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const policy = join(folder, "policy.json");
  writeFileSync(policy, JSON.stringify(auditPolicy));
  for (const part of parts) {
    await t.test(part.name, async (t) => {
      const audit = join(folder, `${part.name}.log`);
      const node = await startNode(t, [part], [`--audit-policy-file=${policy}`, `--audit-log-path=${audit}`]);
      await startProcess(node, 0, "--disable=*", `--enable=${part.name}`);
      if (part.name === "load-balancer-addresses") {
        const status = { loadBalancer: { ingress: [{ ip: poolAddress }] } };
        const service = await node.client.get<Service>(services, { namespace: "default", name: "lb-0" });
        await node.client.update<Service>(services, { ...service, status }, { subresource: "status" });
      }
      if (part.name === "ingress") await createIngress(node);
      const roles = rightsOf([part], { leaseNamespace: "kube-system", leaseName: "coxswain-services" }) as RoleView[];
      const own = roles.filter(({ metadata }) => metadata.name === `coxswain-services:${part.name}`);
      const requests = () =>
        readAuditLog(audit).filter(({ impersonatedUser }) => impersonatedUser?.username === userOfNode("n1"));
      const { works } = traits[part.name] as Trait;
      await becomesEmpty(
        async () => {
          const unused = own.flatMap((role) => unusedRights(role, requests()));
          // The default parts' rights to write are compared with the requests of a whole cluster (process.test.ts).
          const isAsked = (right: string): boolean => part.name === "ingress" || /^(list|watch) /.test(right);
          const left = unused.filter((right) => isAsked(right) && !unread[part.name]?.includes(right));
          return [...left, ...((await works(node, 0)) ? [] : [`${part.name} does not work`])];
        },
        () => node.machine.output,
      );
      await node.machine.stop();
      assert.deepEqual(requests().filter(isRefused).map(summaryOf), []);
    });
  }
});
