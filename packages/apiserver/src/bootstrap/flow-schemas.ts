/**
 * The flow schemas and priority levels of a new cluster.
 * Source: k8s.io/apiserver pkg/apis/flowcontrol/bootstrap/default.go
 */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  FlowSchema,
  PriorityLevelConfiguration,
  PriorityLevelConfigurationSpec,
  ResourcePolicyRule,
  Subject,
} from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";

/** Objects that always exist with exactly this spec. */
const mandatory = ["exempt", "catch-all"];

function limited(shares: number, queues?: number, handSize?: number): PriorityLevelConfigurationSpec {
  const limitResponse =
    queues === undefined || handSize === undefined
      ? { type: "Reject" }
      : { type: "Queue", queuing: { queues, handSize, queueLengthLimit: 50 } };
  return { type: "Limited", limited: { assuredConcurrencyShares: shares, limitResponse } };
}

const levels: Readonly<Record<string, PriorityLevelConfigurationSpec>> = {
  exempt: { type: "Exempt" },
  "catch-all": limited(5),
  system: limited(30, 64, 6),
  "node-high": limited(40, 64, 6),
  "leader-election": limited(10, 16, 4),
  "workload-high": limited(40, 128, 6),
  "workload-low": limited(100, 128, 6),
  "global-default": limited(20, 128, 6),
};

const group = (name: string): Subject => ({ kind: "Group", group: { name } });
const user = (name: string): Subject => ({ kind: "User", user: { name } });
const serviceAccount = (namespace: string, name: string): Subject => ({
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
): ResourcePolicyRule {
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
  rules: NonNullable<FlowSchema["spec"]["rules"]>;
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

export type Level = PriorityLevelConfiguration & KubeObject;
export type Schema = FlowSchema & KubeObject;

export const defaultLevels: readonly Level[] = Object.entries(levels).map(([name, spec]) => ({ metadata: { name }, spec }));

export const defaultSchemas: readonly Schema[] = schemas.map(({ name, level, precedence, by, rules }) => ({
  metadata: { name },
  spec: {
    priorityLevelConfiguration: { name: level },
    matchingPrecedence: precedence,
    ...(by === undefined ? {} : { distinguisherMethod: { type: by } }),
    rules,
  },
}));

/** Whether an object is mandatory, by name. */
export const isMandatory = ({ metadata: { name = "" } }: KubeObject): boolean => mandatory.includes(name);
