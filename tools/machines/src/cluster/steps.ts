/** Steps that write to the API server. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node, Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { clusterRoleBindings, nodes, secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { serverUrl, type Taint } from "../config/settings.ts";
import { readIfThere } from "../host/files.ts";
import { runProgram } from "../host/programs.ts";
import { until } from "../host/until.ts";
import { adminConf, asAdmin, asAdminNow, type Machine, pkiFile } from "../machine.ts";
import type { Step } from "../steps.ts";
import {
  certificatesRight,
  certificatesSecretName,
  configObjects,
  discoveryObjects,
  servicesObjects,
} from "./bootstrap-objects.ts";
import { missingObjects, writeObjects } from "./objects.ts";
import { parseCertificateKey, sealedData, sharedFiles } from "./sealed-certificates.ts";
import { type BootstrapToken, newToken, newTokenText, secretNameOf, secretOf } from "./tokens.ts";

/** A step whose whole work is to write objects. */
function objectsStep(name: string, objects: (machine: Machine) => KubeObject[]): Step<Machine> {
  return {
    name,
    missing: (machine) => asAdmin(machine, (client) => missingObjects(client, objects(machine))),
    run: (machine) => asAdminNow(machine, (client) => writeObjects(client, objects(machine))),
  };
}

/** @param kubelet the kubelets' configuration */
export const uploadConfigStep = (kubelet: (machine: Machine) => Readonly<Record<string, unknown>>): Step<Machine> =>
  objectsStep("upload-config", (machine) => configObjects(machine.cluster, kubelet(machine)));

export const bootstrapTokenStep = (tokens: readonly BootstrapToken[]): Step<Machine> =>
  objectsStep("bootstrap-token", (machine) => [
    // In a dry run the CA may not exist yet.
    ...discoveryObjects(serverUrl(machine.cluster, machine.node), readIfThere(pkiFile("ca.crt")) ?? ""),
    ...certificatesRight(),
    ...tokens.map(secretOf),
  ]);

const controlPlaneLabels = {
  "node-role.kubernetes.io/control-plane": "",
  "node-role.kubernetes.io/master": "",
  "node.kubernetes.io/exclude-from-external-load-balancers": "",
};

/** Labels and taints of a control plane, which a kubelet may not give itself. */
export const markControlPlaneStep: Step<Machine> = {
  name: "mark-control-plane",
  missing: (machine) =>
    asAdmin(machine, async (client) => {
      const all = [
        ...Object.keys(controlPlaneLabels).map((name) => `label node ${machine.node.name} ${name}`),
        ...machine.node.taints.map(({ key, effect }) => `taint node ${machine.node.name} ${key}:${effect}`),
      ];
      if (client === undefined) return all;
      try {
        const node = await client.get<Node>(nodes, { name: machine.node.name }, { signal: AbortSignal.timeout(10_000) });
        const labels = node.metadata.labels ?? {};
        const isMarked = Object.keys(controlPlaneLabels).every((name) => name in labels);
        return isMarked && taintsToAdd(node, machine.node.taints).length === 0 ? [] : all;
      } catch {
        return all;
      }
    }),
  run: (machine) =>
    asAdminNow(machine, async (client) => {
      const { name, taints } = machine.node;
      const get = () => client.get<Node>(nodes, { name }, { signal: AbortSignal.timeout(10_000) });
      const node = await until(() => get().catch(unlessNotFound), {
        timeoutMs: 120_000,
        what: `node ${name} to register`,
        remedy: "journalctl --unit kubelet",
      });
      const added = taintsToAdd(node, taints);
      const body = {
        metadata: { labels: controlPlaneLabels },
        ...(added.length > 0 && { spec: { taints: [...(node.spec?.taints ?? []), ...added] } }),
      };
      await client.patch(nodes, { name }, { type: "strategic", body }, { signal: AbortSignal.timeout(10_000) });
    }),
};

const taintsToAdd = (node: Node, wanted: readonly Taint[]): Taint[] =>
  wanted.filter(({ key, effect }) => !node.spec?.taints?.some((taint) => taint.key === key && taint.effect === effect));

const unlessNotFound = (err: unknown): undefined => {
  if (!isNotFound(err)) throw err;
};

/** The identity of coxswain-services on nodes that join, and its rights. */
export const servicesRightsStep: Step<Machine> = {
  name: "addon",
  missing: (machine) =>
    asAdmin(machine, async (client) => {
      const rights = ["write the rights of coxswain-services"];
      if (client === undefined) return [...rights, "create its token"];
      const signal = AbortSignal.timeout(10_000);
      const hasRights = await client.get(clusterRoleBindings, { name: "coxswain-services" }, { signal }).then(
        () => true,
        () => false,
      );
      return [...(hasRights ? [] : rights), ...(await missingObjects(client, servicesObjects()))];
    }),
  async run(machine) {
    await writeServicesRights(machine.home);
    await asAdminNow(machine, (client) => writeObjects(client, servicesObjects()));
  },
};

/** @param home folder of the archive that defines the roles */
export async function writeServicesRights(home: string): Promise<void> {
  const program = join(home, "bin", "coxswain-services");
  await runProgram(program, ["--apply-rights", "--enable=api-proxy", `--kubeconfig=${adminConf}`]);
}

const sealedMs = 2 * 3_600_000;

/**
 * Stores the CAs and their keys, encrypted, in a Secret. Its owner is a token without usages that expires after two hours, so
 * that the Secret is deleted with it.
 */
export const uploadCertificatesStep = (key: string): Step<Machine> => ({
  name: "upload-certs",
  missing: () => [`seal ${sharedFiles.join(", ")} in Secret kube-system/${certificatesSecretName} for two hours`],
  run: (machine) =>
    asAdminNow(machine, async (client) => {
      const sealing = parseCertificateKey(key);
      const signal = AbortSignal.timeout(30_000);
      const owner = newToken({
        token: newTokenText(),
        description: `Proxy for managing TTL for the ${certificatesSecretName} secret`,
        ttlMs: sealedMs,
        usages: [],
        groups: [],
        now: Date.now(),
      });
      await writeObjects(client, [secretOf(owner)]);
      const { metadata } = await client.get<Secret>(
        secrets,
        { namespace: "kube-system", name: secretNameOf(owner.id) },
        { signal },
      );
      const files = new Map<string, Buffer>(sharedFiles.map((file) => [file, readFileSync(pkiFile(file))]));
      await client.delete(secrets, { namespace: "kube-system", name: certificatesSecretName }, { signal }).catch(unlessNotFound);
      await writeObjects(client, [
        {
          apiVersion: "v1",
          kind: "Secret",
          metadata: {
            namespace: "kube-system",
            name: certificatesSecretName,
            ownerReferences: [
              {
                apiVersion: "v1",
                kind: "Secret",
                name: metadata.name ?? "",
                uid: metadata.uid ?? "",
                controller: true,
                blockOwnerDeletion: true,
              },
            ],
          },
          data: sealedData(files, sealing),
        } as KubeObject, // cast: a KubeObject names only the fields of all kinds
        ...certificatesRight(),
      ]);
      machine.print(`[upload-certs] the Secret ends on ${formatTime(Date.now() + sealedMs)}`);
    }),
});
