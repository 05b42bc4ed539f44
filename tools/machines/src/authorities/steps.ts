/** Steps of one stage of the rotation of the certificate authorities, on one machine. */
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync, renameSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { newClient } from "@coxswain/apimachinery/client/client";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { describeMade } from "@coxswain/pki/command";
import { certificatesIn, isSignedBy } from "@coxswain/pki/files";
import type { PkiPlan } from "@coxswain/pki/plan";
import { giveToReaders } from "@coxswain/pki/readers";
import { nextFile, type RotationStage, rotateAuthorities, signerFile, trustAuthorities } from "@coxswain/pki/rotate";
import { clusterInfoName, discoveryObjects } from "../cluster/bootstrap-objects.ts";
import { discoveredIn } from "../cluster/discovery.ts";
import { missingObjects, writeObjects } from "../cluster/objects.ts";
import { folder } from "../config/settings.ts";
import { etcdDropIn } from "../control-plane/etcd-unit.ts";
import { controlPlaneDaemons } from "../control-plane/flags.ts";
import { isOwnApiReady, ownServer } from "../control-plane/own-server.ts";
import { waitForEtcd } from "../control-plane/steps.ts";
import { Failure } from "../failure.ts";
import { missingFiles, readIfThere, type WantedFile, writeFiles } from "../host/files.ts";
import { runProgram, tryProgram } from "../host/programs.ts";
import { isActive, reloadUnits, unitFolder } from "../host/systemd.ts";
import { header, unitWithFlags } from "../host/units.ts";
import { until } from "../host/until.ts";
import { adminConf, clientBy, pkiFile } from "../machine.ts";
import { endBootstrap } from "../node/join-steps.ts";
import { answers, bootstrapConf, kubeletConf } from "../node/steps.ts";
import type { Step } from "../steps.ts";

interface Rotation {
  readonly stage: RotationStage;
}

/** The PKI plan for this machine's folder; certificate names are kept. */
const plan: PkiPlan = {
  folder,
  nodeName: hostname().toLowerCase(),
  apiserverNames: [],
  etcdNames: [],
  kubeletNames: [],
  kubeletClientGroups: [],
  server: () => "",
};

const authority = pkiFile("ca.crt");
const lines = (made: Awaited<ReturnType<typeof rotateAuthorities>>): string[] =>
  describeMade(made, true).map((line) => line.replace(/^would /, ""));

/** Each machine of the control plane would otherwise create separate authorities. @throws Failure */
async function checkBegin(stage: RotationStage): Promise<void> {
  const next = pkiFile(`${nextFile("ca")}.crt`);
  if (stage !== "trust" || existsSync(next)) return;
  // When the API server does not respond, it is unknown whether other machines exist; the CA may be what was lost.
  const text = await asOwnAdmin(readInfo).catch(() => undefined);
  if (text !== undefined && certificatesIn(discoveredIn(text, "cluster-info").caPem).length > 1)
    throw new Failure(
      `another machine has started the rotation: copy ${next} and its other *-next files from there (coxswain certs rotate-ca --help)`,
    );
}

const filesStep: Step<Rotation> = {
  name: "certs",
  async missing({ stage }) {
    await checkBegin(stage);
    return lines(await rotateAuthorities(plan, stage, { dryRun: true }));
  },
  async run({ stage }) {
    await rotateAuthorities(plan, stage);
    giveToReaders(folder);
  },
};

/** The controller manager's unit with the file of its signing certificate, which must contain a single one. */
function managerUnit(): WantedFile {
  const path = join(unitFolder, "kube-controller-manager.service");
  const text = (readIfThere(path) ?? "").slice(header.length);
  const signer = pkiFile(`${signerFile}.crt`);
  return { path, content: unitWithFlags(text, { "cluster-signing-cert-file": existsSync(signer) ? signer : authority }) };
}

const signerStep: Step<Rotation> = {
  name: "signer",
  missing: () => missingFiles([managerUnit()]),
  async run() {
    writeFiles([managerUnit()]);
    await reloadUnits();
  },
};

/** Daemons that read CA files only at start, in dependency order. */
const daemons = ["etcd", ...controlPlaneDaemons, "coxswain-services", "kubelet"] as const;
const hasUnit = (name: string): boolean => existsSync(name === "etcd" ? etcdDropIn : join(unitFolder, `${name}.service`));

/** Whether the daemon started before the authorities were written. */
async function isOlder(name: string): Promise<boolean> {
  const text = await tryProgram("systemctl", "show", "--property=ExecMainStartTimestampMonotonic", "--value", name);
  const upMs = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1_000;
  const startedMs = Date.now() - upMs + Number(text?.trim() || 0) / 1_000;
  return startedMs < statSync(authority).mtimeMs;
}

const isWell: Readonly<Record<string, () => Promise<boolean>>> = {
  etcd: waitForEtcd,
  "kube-apiserver": isOwnApiReady,
  kubelet: () => answers("http://127.0.0.1:10248/healthz"),
};

const restartMs = 180_000;

/** Restarts run one after the other, so that a control plane of several machines keeps serving. */
const restartStep = (name: (typeof daemons)[number]): Step<Rotation> => ({
  name,
  missing: async () => (hasUnit(name) && (await isOlder(name)) ? [`restart ${name}`] : []),
  async run() {
    await runProgram("systemctl", ["restart", "--no-block", name]);
    await until(async () => !(await isOlder(name)) && (await isActive(name)) && (await (isWell[name]?.() ?? true)), {
      timeoutMs: restartMs,
      what: `${name} to work`,
      remedy: `journalctl --unit ${name}`,
    });
  },
});

/** The objects from which nodes and joining machines get the CAs. */
const clusterInfoStep: Step<Rotation> = {
  name: "cluster-info",
  missing: () => asOwnAdmin(async (client) => missingObjects(client, await clusterInfo(client))),
  run: () => asOwnAdmin(async (client) => writeObjects(client, await clusterInfo(client))),
};

type OwnClient = Awaited<ReturnType<typeof clientBy>>;

async function asOwnAdmin<T>(use: (client: OwnClient) => Promise<T>): Promise<T> {
  const client = await clientBy(adminConf, ownServer());
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

/** cluster-info with the server address that it already has. */
async function clusterInfo(client: OwnClient): Promise<ReturnType<typeof discoveryObjects>> {
  const { server } = discoveredIn(await readInfo(client), "cluster-info");
  return discoveryObjects(server, readFileSync(authority, "utf8"));
}

const requestMs = 30_000;

async function readInfo(client: OwnClient): Promise<string> {
  const path = `/api/v1/namespaces/kube-public/configmaps/${clusterInfoName}`;
  const { status, body } = await client.raw("GET", path, {
    signal: AbortSignal.timeout(requestMs),
    headers: { accept: "application/json" },
  });
  if (status !== 200) throw new Failure(`cannot read ConfigMap kube-public/${clusterInfoName}: ${status}`);
  return (JSON.parse(body.toString()) as ConfigMap).data?.["kubeconfig"] ?? ""; // cast: a ConfigMap of the API server
}

/** Rotation steps of a control plane machine. */
export const controlPlaneRotation: readonly Step<Rotation>[] = [
  filesStep,
  signerStep,
  ...daemons.map(restartStep),
  clusterInfoStep,
];

/** The CAs that the cluster trusts, read over a connection that is verified with this node's current CAs. */
async function bundleOfCluster({ stage }: Rotation): Promise<string> {
  const { host, ca, caFile, serverName } = await loadKubeconfig(existsSync(kubeletConf) ? kubeletConf : bootstrapConf);
  const client = newClient({
    ...{ host, qps: -1 },
    ...(ca !== undefined && { ca }),
    ...(caFile !== undefined && { caFile }),
    ...(serverName !== undefined && { serverName }),
  });
  try {
    const { caPem } = discoveredIn(await readInfo(client), "cluster-info");
    const all = certificatesIn(caPem);
    const isThere = stage === "finish" ? all.length === 1 : all.length > 1;
    if (!isThere)
      throw new Failure(
        `the cluster trusts ${all.length} authorities: run the stage ${stage} on the machines of the control plane first`,
      );
    return caPem;
  } finally {
    client.close();
  }
}

const trustStep: Step<Rotation> = {
  name: "certs",
  missing: async (rotation) => lines(trustAuthorities(plan, await bundleOfCluster(rotation), { dryRun: true })),
  run: async (rotation) => void trustAuthorities(plan, await bundleOfCluster(rotation)),
};

/** True when the kubelet's client certificate was issued by the current signing CA. */
async function isOfSigner(): Promise<boolean> {
  const { cert, certFile } = await loadKubeconfig(kubeletConf);
  const pem = cert ?? readIfThere(certFile ?? "") ?? "";
  return isSignedBy(new X509Certificate(pem), new X509Certificate(readFileSync(authority)));
}

/** Makes the kubelet request a new certificate as when it joined, authenticated by its current one. */
const clientCertificateStep: Step<Rotation> = {
  name: "kubelet-client",
  async missing({ stage }) {
    if (!existsSync(kubeletConf)) return ["have the kubelet ask for its certificate"];
    if (stage === "trust" || (await isOfSigner())) return [];
    if (stage === "sign") return ["have the kubelet ask for a certificate of the new authority"];
    throw new Failure("the kubelet's certificate was issued by the old authority: run the stage sign first, on all machines");
  },
  async run() {
    if (existsSync(kubeletConf)) renameSync(kubeletConf, bootstrapConf);
    await runProgram("systemctl", ["restart", "--no-block", "kubelet"]);
    await endBootstrap();
    if (!(await isOfSigner()))
      throw new Failure(
        "the kubelet has received a certificate of the old authority: run the stage sign on all machines of the control plane, then repeat this command",
      );
  },
};

/** Rotation steps of a node. */
export const nodeRotation: readonly Step<Rotation>[] = [
  trustStep,
  clientCertificateStep,
  restartStep("coxswain-services"),
  restartStep("kubelet"),
];
