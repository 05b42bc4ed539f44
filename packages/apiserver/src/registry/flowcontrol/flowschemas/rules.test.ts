import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "flowschemas.flowcontrol.apiserver.k8s.io",
  { spec: { priorityLevelConfiguration: { name: "p" }, matchingPrecedence: 5 } },
  [
    { name: "a schema", change: {}, want: [] },
    {
      name: "a precedence and no level",
      change: {
        spec: { matchingPrecedence: 10001, priorityLevelConfiguration: { name: "" }, distinguisherMethod: { type: "ByDay" } },
      },
      want: [
        "spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000",
        'spec.distinguisherMethod.type: Unsupported value: flowcontrol.FlowDistinguisherMethod{Type:"ByDay"}: supported values: "ByNamespace", "ByUser"',
        "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
      ],
    },
    {
      name: "rules of nothing",
      change: { "spec.rules": [{ subjects: [] }] },
      want: [
        "spec.rules[0].subjects: Required value: subjects must contain at least one value",
        "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
      ],
    },
    {
      name: "subjects",
      change: {
        "spec.rules": [
          {
            subjects: [
              { kind: "User" },
              { kind: "Group", group: { name: "" } },
              { kind: "ServiceAccount", serviceAccount: { name: "", namespace: "" } },
              { kind: "Robot" },
            ],
            resourceRules: [{ verbs: [], apiGroups: [], resources: [] }],
            nonResourceRules: [{ verbs: ["own"], nonResourceURLs: ["x", "*/"] }],
          },
        ],
      },
      want: [
        "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
        "spec.rules[0].subjects[1].group.name: Required value",
        "spec.rules[0].subjects[2].serviceAccount.name: Required value",
        "spec.rules[0].subjects[2].serviceAccount.namespace: Required value: must specify namespace for service account",
        'spec.rules[0].subjects[3].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"',
        "spec.rules[0].resourceRules[0].verbs: Required value: verbs must contain at least one value",
        "spec.rules[0].resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "spec.rules[0].resourceRules[0].resources: Required value: resource rules must supply at least one resource",
        "spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace",
        'spec.rules[0].nonResourceRules[0].verbs: Unsupported value: []string{"own"}: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"',
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "x": must start with slash',
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: Invalid value: "*/": must start with slash',
      ],
    },
    {
      name: "a precedence below nothing",
      change: { "spec.matchingPrecedence": -1 },
      want: ["spec.matchingPrecedence: Invalid value: -1: must be a positive value"],
    },
    {
      name: "a user without a name beside a group and an account",
      change: {
        "spec.rules": [
          {
            subjects: [{ kind: "User", user: { name: "" }, group: { name: "g" }, serviceAccount: { name: "s", namespace: "n" } }],
            nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/"] }],
          },
        ],
      },
      want: [
        "spec.rules[0].subjects[0].user.name: Required value",
        "spec.rules[0].subjects[0].serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'",
        "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
      ],
    },
    {
      name: "the precedence of the exempt, and a strange level",
      change: { "spec.matchingPrecedence": 1, "spec.priorityLevelConfiguration.name": "_" },
      want: [
        "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
        "spec.priorityLevelConfiguration.name: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "a subject of two kinds, and an account of a strange and no namespace",
      change: {
        "spec.rules": [
          {
            subjects: [
              { kind: "User", user: { name: "u" }, group: { name: "g" } },
              { kind: "ServiceAccount", serviceAccount: { name: "a", namespace: "a.b" } },
              { kind: "ServiceAccount", serviceAccount: { name: "a" } },
            ],
            nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
          },
        ],
      },
      want: [
        "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
        "spec.rules[0].subjects[1].serviceAccount.namespace: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        "spec.rules[0].subjects[2].serviceAccount.namespace: Required value: must specify namespace for service account",
      ],
    },
    {
      name: "rules that say too much, and too little",
      change: {
        "spec.rules": [
          {
            subjects: [{ kind: "User", user: { name: "u" } }],
            resourceRules: [{ verbs: ["look"], apiGroups: ["*", "a"], resources: ["*"], namespaces: ["a.b"] }],
            nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["", "/a*", "/a/*"] }],
          },
        ],
      },
      want: [
        'spec.rules[0].resourceRules[0].verbs: Unsupported value: []string{"look"}: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"',
        'spec.rules[0].resourceRules[0].apiGroups: Invalid value: []string{"*", "a"}: if \'*\' is present, must not specify other api groups',
        "spec.rules[0].resourceRules[0].namespaces[0]: Invalid value: \"a.b\": each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "": must not be empty',
        'spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: Invalid value: "/a*": wildcard can only do suffix matching',
      ],
    },
    {
      name: "a condition twice",
      status: true,
      before: {},
      change: {
        "status.conditions": [
          { type: "A", status: "True" },
          { type: "A", status: "True" },
        ],
      },
      want: ['status.conditions[1].type: Duplicate value: "A"'],
    },
    {
      name: "rules that name all and more",
      change: {
        "spec.rules": [
          {
            subjects: [{ kind: "ServiceAccount", serviceAccount: { name: "a b", namespace: "a" } }],
            resourceRules: [{ verbs: ["*", "get"], apiGroups: ["*", "a"], resources: ["*", "a"], namespaces: ["*", "a"] }],
            nonResourceRules: [{ verbs: ["*", "get"], nonResourceURLs: ["*", "/a"] }],
          },
        ],
      },
      want: [
        "spec.rules[0].subjects[0].serviceAccount.name: Invalid value: \"a b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'spec.rules[0].resourceRules[0].verbs: Invalid value: []string{"*", "get"}: if \'*\' is present, must not specify other verbs',
        'spec.rules[0].resourceRules[0].apiGroups: Invalid value: []string{"*", "a"}: if \'*\' is present, must not specify other api groups',
        'spec.rules[0].resourceRules[0].resources: Invalid value: []string{"*", "a"}: if \'*\' is present, must not specify other resources',
        'spec.rules[0].resourceRules[0].namespaces: Invalid value: []string{"*", "a"}: if \'*\' is present, must not specify other namespaces',
        'spec.rules[0].nonResourceRules[0].verbs: Invalid value: []string{"*", "get"}: if \'*\' is present, must not specify other verbs',
        'spec.rules[0].nonResourceRules[0].nonResourceURLs: Invalid value: []string{"*", "/a"}: if \'*\' is present, must not specify other non-resource URLs',
      ],
    },
    {
      name: "a condition of no type",
      before: {},
      status: true,
      change: { "status.conditions": [{ type: "" }] },
      want: ["status.conditions[0].type: Required value: must not be empty"],
    },
  ],
);

testKindRules(
  "flowschemas.flowcontrol.apiserver.k8s.io",
  {
    metadata: { name: "exempt" },
    spec: {
      priorityLevelConfiguration: { name: "exempt" },
      matchingPrecedence: 1,
      rules: [
        {
          subjects: [{ kind: "Group", group: { name: "system:masters" } }],
          resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] }],
          nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
        },
      ],
    },
  },
  [
    { name: "the exempt schema as it is", change: {}, want: [] },
    {
      name: "an exempt schema for others",
      change: { "spec.rules[0].subjects[0].group.name": "x" },
      want: [
        'spec: Invalid value: flowcontrol.FlowSchemaSpec{PriorityLevelConfiguration:flowcontrol.PriorityLevelConfigurationReference{Name:"exempt"}, MatchingPrecedence:1, DistinguisherMethod:(*flowcontrol.FlowDistinguisherMethod)(nil), Rules:[]flowcontrol.PolicyRulesWithSubjects{flowcontrol.PolicyRulesWithSubjects{Subjects:[]flowcontrol.Subject{flowcontrol.Subject{Kind:"Group", User:(*flowcontrol.UserSubject)(nil), Group:(*flowcontrol.GroupSubject)(0xc000000000), ServiceAccount:(*flowcontrol.ServiceAccountSubject)(nil)}}, ResourceRules:[]flowcontrol.ResourcePolicyRule{flowcontrol.ResourcePolicyRule{Verbs:[]string{"*"}, APIGroups:[]string{"*"}, Resources:[]string{"*"}, ClusterScope:true, Namespaces:[]string{"*"}}}, NonResourceRules:[]flowcontrol.NonResourcePolicyRule{flowcontrol.NonResourcePolicyRule{Verbs:[]string{"*"}, NonResourceURLs:[]string{"*"}}}}}}: spec of \'exempt\' must equal the fixed value',
      ],
    },
  ],
);
