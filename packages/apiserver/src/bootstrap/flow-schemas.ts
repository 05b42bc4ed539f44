/**
 * The default flow schemas and priority levels, as objects; requests are limited by max-in-flight for now.
 * Source: k8s.io/apiserver pkg/apis/flowcontrol/bootstrap/default.go
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { flowSchemas, priorityLevelConfigurations } from "@coxswain/apimachinery/schema/kinds/resources";
import { ensure } from "./ensure.ts";

const autoUpdate = "apf.kubernetes.io/autoupdate-spec";

interface WithSpec extends KubeObject {
  spec: object;
}

function limited(shares: number, queues?: number, handSize?: number): object {
  const limitResponse =
    queues === undefined ? { type: "Reject" } : { type: "Queue", queuing: { queues, handSize, queueLengthLimit: 50 } };
  return { type: "Limited", limited: { assuredConcurrencyShares: shares, limitResponse } };
}

const levels: Readonly<Record<string, object>> = {
  exempt: { type: "Exempt" },
  "catch-all": limited(5),
  system: limited(30, 64, 6),
  "node-high": limited(40, 64, 6),
  "leader-election": limited(10, 16, 4),
  "workload-high": limited(40, 128, 6),
  "workload-low": limited(100, 128, 6),
  "global-default": limited(20, 128, 6),
};

const group = (name: string): object => ({ kind: "Group", group: { name } });
const user = (name: string): object => ({ kind: "User", user: { name } });
const serviceAccount = (namespace: string, name: string): object => ({
  kind: "ServiceAccount",
  serviceAccount: { namespace, name },
});
const everybody = [group("system:unauthenticated"), group("system:authenticated")];

function resourceRule(
  verbs: string[],
  apiGroups: string[],
  resources: string[],
  namespaces: string[],
  clusterScope: boolean,
): object {
  return { verbs, apiGroups, resources, ...(clusterScope ? { clusterScope } : {}), namespaces };
}
const anyResource = [resourceRule(["*"], ["*"], ["*"], ["*"], true)];
const anyUrl = [{ verbs: ["*"], nonResourceURLs: ["*"] }];
const anything = { resourceRules: anyResource, nonResourceRules: anyUrl };
const lock = ["get", "create", "update"];

interface SchemaRow {
  name: string;
  level: string;
  precedence: number;
  by?: "ByUser" | "ByNamespace";
  rules: object[];
}

const schemas: readonly SchemaRow[] = [
  { name: "exempt", level: "exempt", precedence: 1, rules: [{ subjects: [group("system:masters")], ...anything }] },
  {
    name: "probes",
    level: "exempt",
    precedence: 2,
    rules: [{ subjects: everybody, nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/healthz", "/readyz", "/livez"] }] }],
  },
  {
    name: "system-leader-election",
    level: "leader-election",
    precedence: 100,
    by: "ByUser",
    rules: [
      {
        subjects: [user("system:kube-controller-manager"), user("system:kube-scheduler"), serviceAccount("kube-system", "*")],
        resourceRules: [
          resourceRule(lock, [""], ["endpoints", "configmaps"], ["kube-system"], false),
          resourceRule(lock, ["coordination.k8s.io"], ["leases"], ["*"], false),
        ],
      },
    ],
  },
  {
    name: "workload-leader-election",
    level: "leader-election",
    precedence: 200,
    by: "ByUser",
    rules: [
      {
        subjects: [serviceAccount("kube-system", "*")],
        resourceRules: [
          resourceRule(lock, [""], ["endpoints", "configmaps"], ["*"], false),
          resourceRule(lock, ["coordination.k8s.io"], ["leases"], ["*"], false),
        ],
      },
    ],
  },
  {
    name: "system-node-high",
    level: "node-high",
    precedence: 400,
    by: "ByUser",
    rules: [
      {
        subjects: [group("system:nodes")],
        resourceRules: [
          resourceRule(["*"], [""], ["nodes", "nodes/status"], ["*"], true),
          resourceRule(["*"], ["coordination.k8s.io"], ["leases"], ["*"], false),
        ],
      },
    ],
  },
  {
    name: "system-nodes",
    level: "system",
    precedence: 500,
    by: "ByUser",
    rules: [{ subjects: [group("system:nodes")], ...anything }],
  },
  {
    name: "kube-controller-manager",
    level: "workload-high",
    precedence: 800,
    by: "ByNamespace",
    rules: [{ subjects: [user("system:kube-controller-manager")], ...anything }],
  },
  {
    name: "kube-scheduler",
    level: "workload-high",
    precedence: 800,
    by: "ByNamespace",
    rules: [{ subjects: [user("system:kube-scheduler")], ...anything }],
  },
  {
    name: "kube-system-service-accounts",
    level: "workload-high",
    precedence: 900,
    by: "ByNamespace",
    rules: [{ subjects: [serviceAccount("kube-system", "*")], ...anything }],
  },
  {
    name: "service-accounts",
    level: "workload-low",
    precedence: 9000,
    by: "ByUser",
    rules: [{ subjects: [group("system:serviceaccounts")], ...anything }],
  },
  {
    name: "global-default",
    level: "global-default",
    precedence: 9900,
    by: "ByUser",
    rules: [{ subjects: everybody, ...anything }],
  },
  { name: "catch-all", level: "catch-all", precedence: 10000, by: "ByUser", rules: [{ subjects: everybody, ...anything }] },
];

export async function ensureFlowSchemas(client: Client, signal?: AbortSignal): Promise<void> {
  const bring = (wanted: WithSpec) => (existing: WithSpec) => {
    if (existing.metadata.annotations?.[autoUpdate] !== "true" || semanticEqual(existing.spec, wanted.spec)) return undefined;
    return { ...existing, spec: wanted.spec };
  };
  for (const [name, spec] of Object.entries(levels)) {
    const wanted = { metadata: { name, annotations: { [autoUpdate]: "true" } }, spec };
    await ensure<WithSpec>(client, priorityLevelConfigurations, wanted, bring(wanted), signal);
  }
  for (const { name, level, precedence, by, rules } of schemas) {
    const spec = {
      priorityLevelConfiguration: { name: level },
      matchingPrecedence: precedence,
      ...(by === undefined ? {} : { distinguisherMethod: { type: by } }),
      rules,
    };
    const wanted = { metadata: { name, annotations: { [autoUpdate]: "true" } }, spec };
    await ensure<WithSpec>(client, flowSchemas, wanted, bring(wanted), signal);
  }
}
