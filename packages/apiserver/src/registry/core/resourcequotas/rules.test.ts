import { goQuantity } from "@coxswain/apimachinery/objects/schema/go/go-print";
import { testKindRules } from "../../../testing/kind-rules.ts";

const quantity = (amount: string): string => goQuantity(amount).text;

testKindRules("resourcequotas", { spec: { hard: { pods: "1" } } }, [
  { name: "a quota", change: {}, want: [] },
  {
    name: "amounts",
    change: { "spec.hard": { pods: "1500m", cpu: "-1", "a b": "1", x: "1" } },
    want: [
      'spec.hard[pods]: Invalid value: resource.Quantity{i:resource.int64Amount{value:1500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"1500m", Format:"DecimalSI"}: must be an integer',
      'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      "spec.hard[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.hard[a b]: Invalid value: "a b": must be a standard resource for quota',
      'spec.hard[x]: Invalid value: "x": must be a standard resource type or fully qualified',
      'spec.hard[x]: Invalid value: "x": must be a standard resource for quota',
    ],
  },
  {
    name: "scopes that do not go together, and are unknown",
    change: { "spec.scopes": ["BestEffort", "NotBestEffort", "Mine"] },
    want: [
      'spec.scopes: Invalid value: []core.ResourceQuotaScope{"BestEffort", "NotBestEffort", "Mine"}: unsupported scope',
      'spec.scopes: Invalid value: []core.ResourceQuotaScope{"BestEffort", "NotBestEffort", "Mine"}: conflicting scopes',
    ],
  },
  {
    name: "a scope that does not fit an amount",
    change: { "spec.scopes": ["BestEffort"], "spec.hard": { cpu: "1" } },
    want: ['spec.scopes: Invalid value: []core.ResourceQuotaScope{"BestEffort"}: unsupported scope applied to resource'],
  },
  {
    name: "a selector of scopes",
    change: {
      "spec.scopeSelector": {
        matchExpressions: [
          { scopeName: "Mine", operator: "Is" },
          { scopeName: "Terminating", operator: "In", values: ["a"] },
          { scopeName: "PriorityClass", operator: "In" },
          { scopeName: "PriorityClass", operator: "Exists", values: ["a"] },
        ],
      },
    },
    want: [
      'spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Mine": unsupported scope',
      'spec.scopeSelector.matchExpressions.operator: Invalid value: "Is": not a valid selector operator',
      "spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
      "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
      "spec.scopeSelector.matchExpressions.values: Invalid value: []string{\"a\"}: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
    ],
  },
  {
    name: "other scopes",
    change: { "spec.scopes": ["Terminating"] },
    before: {},
    want: ['spec.scopes: Invalid value: []core.ResourceQuotaScope{"Terminating"}: field is immutable'],
  },
  {
    name: "negative use",
    change: { "status.used": { pods: "-1" } },
    before: {},
    status: true,
    want: ['status.used[pods]: Invalid value: "-1": must be greater than or equal to 0'],
  },
  {
    name: "terms that contradict each other, of resources they say nothing of",
    before: {},
    change: {
      "spec.hard": { services: "1" },
      "spec.scopeSelector": {
        matchExpressions: [
          { scopeName: "BestEffort", operator: "Exists" },
          { scopeName: "NotBestEffort", operator: "Exists" },
        ],
      },
    },
    want: [
      'spec.scopeSelector.matchExpressions: Invalid value: core.ScopeSelector{MatchExpressions:[]core.ScopedResourceSelectorRequirement{core.ScopedResourceSelectorRequirement{ScopeName:"BestEffort", Operator:"Exists", Values:[]string(nil)}, core.ScopedResourceSelectorRequirement{ScopeName:"NotBestEffort", Operator:"Exists", Values:[]string(nil)}}}: unsupported scope applied to resource',
      'spec.scopeSelector.matchExpressions: Invalid value: core.ScopeSelector{MatchExpressions:[]core.ScopedResourceSelectorRequirement{core.ScopedResourceSelectorRequirement{ScopeName:"BestEffort", Operator:"Exists", Values:[]string(nil)}, core.ScopedResourceSelectorRequirement{ScopeName:"NotBestEffort", Operator:"Exists", Values:[]string(nil)}}}: unsupported scope applied to resource',
      "spec.scopeSelector.matchExpressions: Invalid value: []core.ResourceQuotaScope(nil): conflicting scopes",
    ],
  },
  ...[
    ...["pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"],
    ...["persistentvolumeclaims", "services.nodeports", "services.loadbalancers"],
  ].flatMap((name) => [
    { name: `a number of ${name}, also in thousandths`, change: { "spec.hard": { [name]: "2000m" } }, want: [] },
    {
      name: `a half of ${name}`,
      change: { "spec.hard": { [name]: "500m" } },
      want: [`spec.hard[${name}]: Invalid value: ${quantity("500m")}: must be an integer`],
    },
  ]),
  {
    name: "amounts of compute resources, of storage, of a class, of objects of a kind and of huge pages",
    change: {
      "spec.hard": {
        ...Object.fromEntries(
          ["cpu", "memory", "ephemeral-storage"].flatMap((name) =>
            ["", "requests.", "limits."].map((side) => [side + name, "500m"]),
          ),
        ),
        "requests.storage": "500m",
        "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
        "count/deployments.apps": "5",
        "hugepages-2Mi": "2Mi",
        "requests.hugepages-2Mi": "2Mi",
        "requests.example.com/gpu": "1",
      },
    },
    want: [],
  },
  {
    name: "limits of huge pages, which have requests alone",
    change: { "spec.hard": { "limits.hugepages-2Mi": "2Mi" } },
    want: [
      'spec.hard[limits.hugepages-2Mi]: Invalid value: "limits.hugepages-2Mi": must be a standard resource type or fully qualified',
      'spec.hard[limits.hugepages-2Mi]: Invalid value: "limits.hugepages-2Mi": must be a standard resource for quota',
    ],
  },
  {
    name: "storage itself",
    change: { "spec.hard": { storage: "1" } },
    want: ['spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota'],
  },
  ...["Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"].flatMap((scope) => [
    {
      name: `the scope ${scope} of compute resources and pods`,
      change: {
        "spec.scopes": [scope],
        "spec.hard": { pods: "1", cpu: "1", memory: "1", "requests.cpu": "1", "limits.memory": "1", "a.b/count": "1" },
      },
      want: [],
    },
    {
      name: `the scope ${scope} of something else`,
      change: { "spec.scopes": [scope], "spec.hard": { pods: "1", secrets: "1" } },
      want: [`spec.scopes: Invalid value: []core.ResourceQuotaScope{"${scope}"}: unsupported scope applied to resource`],
    },
  ]),
  { name: "the scope BestEffort of pods", change: { "spec.scopes": ["BestEffort"] }, want: [] },
  {
    name: "pods that end and that do not",
    change: { "spec.scopes": ["Terminating", "NotTerminating"] },
    want: ['spec.scopes: Invalid value: []core.ResourceQuotaScope{"Terminating", "NotTerminating"}: conflicting scopes'],
  },
  {
    name: "terms for classes of priority and for what exists",
    change: {
      "spec.scopeSelector": {
        matchExpressions: [
          { scopeName: "PriorityClass", operator: "In", values: ["a"] },
          { scopeName: "PriorityClass", operator: "NotIn", values: ["a", "b"] },
          { scopeName: "PriorityClass", operator: "DoesNotExist" },
          { scopeName: "Terminating", operator: "Exists" },
        ],
      },
    },
    want: [],
  },
  ...["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"].map((scopeName) => ({
    name: `a term for ${scopeName} that does not exist`,
    change: { "spec.scopeSelector": { matchExpressions: [{ scopeName, operator: "DoesNotExist" }] } },
    want: [
      "spec.scopeSelector.matchExpressions.operator: Invalid value: \"DoesNotExist\": must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
    ],
  })),
  {
    name: "terms that contradict each other, of pods",
    change: {
      "spec.scopeSelector": {
        matchExpressions: [
          { scopeName: "Terminating", operator: "Exists" },
          { scopeName: "NotTerminating", operator: "Exists" },
        ],
      },
    },
    want: ["spec.scopeSelector.matchExpressions: Invalid value: []core.ResourceQuotaScope(nil): conflicting scopes"],
  },
  {
    name: "a scope twice that it had once",
    before: { "spec.scopes": ["NotBestEffort"] },
    change: { "spec.scopes": ["NotBestEffort", "NotBestEffort"] },
    want: [],
  },
  {
    name: "no scopes any more",
    before: { "spec.scopes": ["NotBestEffort"] },
    change: { "spec.scopes": undefined },
    want: ["spec.scopes: Invalid value: []core.ResourceQuotaScope(nil): field is immutable"],
  },
  {
    name: "negative amounts in a status",
    before: {},
    status: true,
    change: { status: { hard: { cpu: "-1" }, used: { cpu: "0", "a b": "1" } } },
    want: [
      'status.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      "status.used[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'status.used[a b]: Invalid value: "a b": must be a standard resource for quota',
    ],
  },
  {
    name: "an unknown scope of resources that no scope limits",
    change: { "spec.scopes": ["Mine"], "spec.hard": { secrets: "1" } },
    want: ['spec.scopes: Invalid value: []core.ResourceQuotaScope{"Mine"}: unsupported scope'],
  },
  {
    name: "a term that does not exist, of values, and one of another operator",
    change: {
      "spec.scopeSelector": {
        matchExpressions: [
          { scopeName: "PriorityClass", operator: "DoesNotExist", values: ["a"] },
          { scopeName: "PriorityClass", operator: "NotIn", values: [] },
          { scopeName: "PriorityClass", operator: "" },
        ],
      },
    },
    want: [
      "spec.scopeSelector.matchExpressions.values: Invalid value: []string{\"a\"}: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
      "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
      'spec.scopeSelector.matchExpressions.operator: Invalid value: "": not a valid selector operator',
    ],
  },
]);
