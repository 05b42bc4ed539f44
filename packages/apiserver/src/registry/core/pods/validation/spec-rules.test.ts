import { testKindRules } from "../../../../testing/kind-rules.ts";

testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  {
    name: "a restart policy",
    change: { "spec.restartPolicy": "Maybe" },
    want: ['spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"'],
  },
  {
    name: "a DNS policy",
    change: { "spec.dnsPolicy": "Mine" },
    want: [
      'spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
    ],
  },
  {
    name: "no DNS servers with policy None",
    change: { "spec.dnsPolicy": "None" },
    want: ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
  },
  {
    name: "too many DNS servers, and wrong ones",
    change: {
      "spec.dnsConfig": { nameservers: ["1.1.1.1", "1.1.1.2", "x", "1.1.1.4"], searches: ["a_b"], options: [{ name: "" }] },
    },
    want: [
      'spec.dnsConfig.nameservers: Invalid value: []string{"1.1.1.1", "1.1.1.2", "x", "1.1.1.4"}: must not have more than 3 nameservers',
      'spec.dnsConfig.nameservers[2]: Invalid value: "x": must be valid IP address',
      "spec.dnsConfig.searches[0]: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "spec.dnsConfig.options[0]: Required value: must not be empty",
    ],
  },
  {
    name: "host aliases",
    change: { "spec.hostAliases": [{ ip: "x", hostnames: ["a b"] }] },
    want: [
      'spec.hostAliases.ip: Invalid value: "x": must be valid IP address',
      "spec.hostAliases.hostnames: Invalid value: \"a b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "host aliases that are fine on the host's network too",
    change: { "spec.hostNetwork": true, "spec.hostAliases": [{ ip: "1.1.1.1", hostnames: ["a"] }] },
    want: [],
  },
  {
    name: "process namespaces of host and pod",
    change: { "spec.hostPID": true, "spec.shareProcessNamespace": true },
    want: [
      "spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled",
    ],
  },
  {
    name: "names that are no labels",
    change: {
      "spec.hostname": "a.b",
      "spec.subdomain": "A",
      "spec.serviceAccountName": "_",
      "spec.nodeName": "_",
      "spec.priorityClassName": "_",
      "spec.runtimeClassName": "_",
    },
    want: [
      "spec.serviceAccountName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "spec.nodeName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "spec.hostname: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "spec.subdomain: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "spec.priorityClassName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "spec.runtimeClassName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "a deadline of nothing",
    change: { "spec.activeDeadlineSeconds": 0 },
    want: ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
  },
  { name: "a negative grace period", change: { "spec.terminationGracePeriodSeconds": -1 }, want: [] },
  {
    name: "a node selector of bad labels",
    change: { "spec.nodeSelector": { "a b": "c d" } },
    want: [
      "spec.nodeSelector: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.nodeSelector: Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  },
  {
    name: "tolerations",
    change: {
      "spec.tolerations": [
        { operator: "Equal" },
        { key: "a", operator: "Exists", value: "x" },
        { key: "a b", effect: "Never" },
        { key: "a", operator: "Equal", value: "a b" },
        { key: "a", operator: "Gt" },
        { key: "a", tolerationSeconds: 1, effect: "NoSchedule" },
      ],
    },
    want: [
      'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
      'spec.tolerations[1].operator: Invalid value: core.Toleration{Key:"a", Operator:"Exists", Value:"x", Effect:"", TolerationSeconds:(*int64)(nil)}: value must be empty when `operator` is \'Exists\'',
      "spec.tolerations[2].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.tolerations[2].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
      "spec.tolerations[3].operator: Invalid value: \"a b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      'spec.tolerations[4].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"',
      "spec.tolerations[5].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
    ],
  },
  {
    name: "node affinity",
    change: {
      "spec.affinity": {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: "a", operator: "In" },
                  { key: "a", operator: "Gt", values: ["1", "2"] },
                  { key: "a", operator: "Exists", values: ["x"] },
                  { key: "a", operator: "Is" },
                ],
                matchFields: [{ key: "metadata.uid", operator: "In", values: ["x"] }],
              },
            ],
          },
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 0, preference: {} }],
        },
      },
    },
    want: [
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[2].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[3].operator: Invalid value: "Is": not a valid selector operator',
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key',
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100",
    ],
  },
  {
    name: "no node selector terms",
    change: { "spec.affinity": { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
    want: [
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term",
    ],
  },
  {
    name: "pod affinity",
    change: {
      "spec.affinity": {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: "", namespaces: ["_"], labelSelector: { matchLabels: { "a b": "c" } } },
          ],
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 101, podAffinityTerm: { topologyKey: "a b" } }],
        },
      },
    },
    want: [
      "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace: Invalid value: \"_\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty",
      'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must be non-empty',
      "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
      "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "spread constraints",
    change: {
      "spec.topologySpreadConstraints": [
        { maxSkew: 0, topologyKey: "", whenUnsatisfiable: "" },
        { maxSkew: 1, topologyKey: "z", whenUnsatisfiable: "Wait" },
        { maxSkew: 1, topologyKey: "z", whenUnsatisfiable: "Wait" },
      ],
    },
    want: [
      "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
      "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
      'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"',
      'spec.topologySpreadConstraints[1].whenUnsatisfiable: Unsupported value: "Wait": supported values: "DoNotSchedule", "ScheduleAnyway"',
      'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, Wait}"',
      'spec.topologySpreadConstraints[2].whenUnsatisfiable: Unsupported value: "Wait": supported values: "DoNotSchedule", "ScheduleAnyway"',
    ],
  },
  {
    name: "readiness gates",
    change: { "spec.readinessGates": [{ conditionType: "a b" }] },
    want: [
      "spec.readinessGates[0].conditionType: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "a preemption policy",
    change: { "spec.preemptionPolicy": "Always" },
    want: ['spec.preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"'],
  },
  {
    name: "no DNS server with policy None",
    change: { "spec.dnsPolicy": "None", "spec.dnsConfig": { searches: ["a.b"] } },
    want: ["spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None"],
  },
  {
    name: "too many domains to search",
    change: { "spec.dnsConfig": { searches: ["a1", "a2", "a3", "a4", "a5", "a6", "a7"] } },
    want: [
      'spec.dnsConfig.searches: Invalid value: []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7"}: must not have more than 6 search paths',
    ],
  },
  {
    name: "domains to search that are too long",
    change: {
      "spec.dnsConfig": { searches: ["a", "b"].map((letter) => Array.from({ length: 4 }, () => letter.repeat(40)).join(".")) },
    },
    want: [
      'spec.dnsConfig.searches: Invalid value: []string{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}: must not have more than 256 characters (including spaces) in the search list',
    ],
  },
  {
    name: "fields that nodes do not have",
    change: {
      "spec.affinity": {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchFields: [
                  { key: "metadata.name", operator: "Exists" },
                  { key: "metadata.name", operator: "In", values: ["a", "b"] },
                  { key: "metadata.name", operator: "In", values: ["_"] },
                ],
              },
            ],
          },
        },
      },
    },
    want: [
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator: Invalid value: "Exists": not a valid selector operator',
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[1].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
      "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[2].values[0]: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "tolerations of the annotation that are no JSON",
    change: { "metadata.annotations": { "scheduler.alpha.kubernetes.io/tolerations": "[" } },
    want: ['metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/tolerations": unexpected end of JSON input'],
  },
  {
    name: "tolerations of the annotation",
    change: { "metadata.annotations": { "scheduler.alpha.kubernetes.io/tolerations": '[{"key":"a b","operator":"Exists"}]' } },
    want: [
      "metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "a claim of too long a name, and an image without pool",
    change: {
      "metadata.name": "p".repeat(250),
      "spec.volumes": [
        {
          name: "v".repeat(10),
          ephemeral: {
            volumeClaimTemplate: {
              spec: {
                accessModes: ["ReadWriteOnce"],
                resources: { requests: { storage: "1Gi" } },
                dataSource: { kind: "Pod", name: "a" },
              },
            },
          },
        },
      ],
    },
    want: [
      'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource: Invalid value: "Pod"',
      'spec.volumes[0].name: Invalid value: "vvvvvvvvvv": PVC name "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp-vvvvvvvvvv": must be no more than 253 characters',
    ],
  },
  {
    name: "terms of affinity that are none",
    change: {
      "spec.affinity": {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, preference: { matchExpressions: [{ key: "a b", operator: "Exists" }] } },
          ],
        },
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: "t", namespaceSelector: { matchLabels: { "a b": "c" } } },
          ],
        },
      },
    },
    want: [
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "volumes of no names, of wrong modes and paths",
    change: {
      "spec.volumes": [
        { name: "A", emptyDir: {} },
        { name: "b", downwardAPI: { defaultMode: 512, items: [{ path: "../a", fieldRef: { fieldPath: "metadata.name" } }] } },
        { name: "c", csi: { driver: "d", nodePublishSecretRef: { name: "a b" } } },
        {
          name: "d",
          projected: {
            sources: [{ secret: { name: "s", items: [{ key: "", path: "a" }] } }, { downwardAPI: { items: [{ path: "a" }] } }],
          },
        },
        {
          name: "e",
          ephemeral: {
            volumeClaimTemplate: {
              metadata: { labels: { "a b": "c" }, annotations: { "a b": "c" } },
              spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
            },
          },
        },
      ],
    },
    want: [
      "spec.volumes[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "spec.volumes[1].downwardAPI.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
      "spec.volumes[1].downwardAPI.path: Invalid value: \"../a\": must not contain '..'",
      "spec.volumes[2].csi.name: Invalid value: \"a b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "spec.volumes[3].projected.sources[0].secret.items[0].key: Required value",
      "spec.volumes[3].projected.sources[1].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
      'spec.volumes[3].projected: Invalid value: "a": conflicting duplicate paths',
      "spec.volumes[4].ephemeral.volumeClaimTemplate.metadata.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.volumes[4].ephemeral.volumeClaimTemplate.metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "claims to be made from sources of no kind, and from two",
    change: {
      "spec.volumes": [
        {
          name: "a",
          ephemeral: {
            volumeClaimTemplate: {
              spec: {
                accessModes: ["ReadWriteOnce"],
                resources: { requests: { storage: "1Gi" } },
                dataSourceRef: { apiGroup: "a.b" },
              },
            },
          },
        },
        {
          name: "b",
          ephemeral: {
            volumeClaimTemplate: {
              spec: {
                accessModes: ["ReadWriteOnce"],
                resources: { requests: { storage: "1Gi" } },
                dataSource: { kind: "PersistentVolumeClaim", name: "a" },
                dataSourceRef: { kind: "PersistentVolumeClaim", name: "b" },
              },
            },
          },
        },
      ],
    },
    want: [
      "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef.name: Required value",
      "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSourceRef.kind: Required value",
      'spec.volumes[1].ephemeral.volumeClaimTemplate.spec: Invalid value: field.Path{name:"dataSource", index:"", parent:(*field.Path)(0xc000000000)}: must match dataSourceRef',
    ],
  },
]);
