import assert from "node:assert/strict";
import { test } from "node:test";
import { coerce } from "@coxswain/apimachinery/objects/codec/json";
import { formatGroupVersion, type GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { defaultsOf, resourcesForTests } from "../testing/kind-rules.ts";
import { smallestObjects } from "../testing/smallest-objects.ts";
import { conversionsOf } from "./conversion.ts";

/** Parts of a workload that have no defaults left, all of values that are not the default. */
const workload = {
  replicas: 0,
  revisionHistoryLimit: 0,
  template: {
    spec: {
      dnsPolicy: "Default",
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 0,
      securityContext: {},
      schedulerName: "mine",
    },
  },
};
const generation = (value: string): object => ({
  name: "valid",
  annotations: { "deprecated.daemonset.template.generation": value },
});
const cron = { concurrencyPolicy: "Forbid", suspend: true, successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0 };

const podDefaults = {
  ...{ dnsPolicy: "ClusterFirst", restartPolicy: "Always", terminationGracePeriodSeconds: 30, securityContext: {} },
  schedulerName: "default-scheduler",
};

const rows: readonly { resource: string; given: object; want: object }[] = [
  {
    resource: "services",
    given: { spec: { ports: [{ port: 80 }], sessionAffinity: "ClientIP" } },
    want: {
      spec: {
        ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
        sessionAffinity: "ClientIP",
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
        type: "ClusterIP",
        internalTrafficPolicy: "Cluster",
      },
    },
  },
  {
    resource: "services",
    given: { spec: { type: "LoadBalancer", ports: [{ port: 80, targetPort: "http" }], sessionAffinityConfig: { clientIP: {} } } },
    want: {
      spec: {
        type: "LoadBalancer",
        ports: [{ port: 80, targetPort: "http", protocol: "TCP" }],
        sessionAffinity: "None",
        externalTrafficPolicy: "Cluster",
        internalTrafficPolicy: "Cluster",
        allocateLoadBalancerNodePorts: true,
      },
    },
  },
  {
    resource: "services",
    given: {
      spec: {
        type: "NodePort",
        sessionAffinity: "ClientIP",
        ports: [
          { port: 80, targetPort: "" },
          { port: 81, targetPort: 0 },
        ],
      },
    },
    want: {
      spec: {
        type: "NodePort",
        ports: [
          { port: 80, targetPort: 80, protocol: "TCP" },
          { port: 81, targetPort: 81, protocol: "TCP" },
        ],
        sessionAffinity: "ClientIP",
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 10800 } },
        externalTrafficPolicy: "Cluster",
        internalTrafficPolicy: "Cluster",
      },
    },
  },
  {
    resource: "services",
    given: {
      spec: {
        sessionAffinity: "ClientIP",
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } },
        internalTrafficPolicy: "Local",
      },
    },
    want: {
      spec: {
        type: "ClusterIP",
        sessionAffinity: "ClientIP",
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } },
        internalTrafficPolicy: "Local",
      },
    },
  },
  {
    resource: "services",
    given: { spec: { type: "LoadBalancer", externalTrafficPolicy: "Local", allocateLoadBalancerNodePorts: false } },
    want: {
      spec: {
        type: "LoadBalancer",
        sessionAffinity: "None",
        externalTrafficPolicy: "Local",
        internalTrafficPolicy: "Cluster",
        allocateLoadBalancerNodePorts: false,
      },
    },
  },
  {
    resource: "services",
    given: { spec: { type: "ExternalName", externalName: "a.b" } },
    want: { spec: { type: "ExternalName", externalName: "a.b", sessionAffinity: "None" } },
  },
  {
    resource: "persistentvolumes",
    given: {
      spec: { persistentVolumeReclaimPolicy: "Delete", volumeMode: "Block", hostPath: { path: "/x", type: "File" } },
      status: { phase: "Bound" },
    },
    want: {
      spec: { persistentVolumeReclaimPolicy: "Delete", volumeMode: "Block", hostPath: { path: "/x", type: "File" } },
      status: { phase: "Bound" },
    },
  },
  {
    resource: "secrets",
    given: { type: "a", data: { a: "eA==", b: "eQ==" }, stringData: { b: "z", c: "é" } },
    want: { type: "a", data: { a: "eA==", b: "eg==", c: "w6k=" } },
  },
  {
    resource: "limitranges",
    given: {
      spec: {
        limits: [
          {
            type: "Container",
            max: { cpu: "4", memory: "4" },
            min: { cpu: "1", "ephemeral-storage": "1" },
            default: { cpu: "3" },
            defaultRequest: { cpu: "2" },
          },
        ],
      },
    },
    want: {
      spec: {
        limits: [
          {
            type: "Container",
            max: { cpu: "4", memory: "4" },
            min: { cpu: "1", "ephemeral-storage": "1" },
            default: { cpu: "3", memory: "4" },
            defaultRequest: { cpu: "2", memory: "4", "ephemeral-storage": "1" },
          },
        ],
      },
    },
  },
  {
    resource: "resourcequotas",
    given: { status: { hard: { cpu: "1500u" }, used: { cpu: "1n", memory: "1Ki" } } },
    want: { status: { hard: { cpu: "2m" }, used: { cpu: "1m", memory: "1Ki" } } },
  },
  {
    resource: "replicationcontrollers",
    given: {
      metadata: { name: "n", labels: { own: "x" } },
      spec: { replicas: 0, selector: { c: "d" }, template: { metadata: { labels: { a: "b" } } } },
    },
    want: {
      metadata: { name: "n", labels: { own: "x" } },
      spec: {
        replicas: 0,
        selector: { c: "d" },
        template: {
          metadata: { labels: { a: "b" } },
          spec: {
            dnsPolicy: "ClusterFirst",
            restartPolicy: "Always",
            terminationGracePeriodSeconds: 30,
            securityContext: {},
            schedulerName: "default-scheduler",
          },
        },
      },
    },
  },
  { resource: "replicationcontrollers", given: {}, want: { spec: { replicas: 1 } } },
  {
    resource: "replicationcontrollers",
    given: {
      metadata: { name: "n", labels: {} },
      spec: { selector: {}, template: { metadata: { labels: { a: "b" } }, spec: podDefaults } },
    },
    want: {
      metadata: { name: "n", labels: { a: "b" } },
      spec: { replicas: 1, selector: { a: "b" }, template: { metadata: { labels: { a: "b" } }, spec: podDefaults } },
    },
  },
  {
    resource: "persistentvolumeclaims",
    given: { spec: { volumeMode: "Block" }, status: { phase: "" } },
    want: { spec: { volumeMode: "Block" }, status: { phase: "Pending" } },
  },
  {
    resource: "persistentvolumeclaims",
    given: { status: { phase: "Lost" } },
    want: { spec: { volumeMode: "Filesystem" }, status: { phase: "Lost" } },
  },
  {
    resource: "persistentvolumes",
    given: { spec: { persistentVolumeReclaimPolicy: "" }, status: { phase: "" } },
    want: { spec: { persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem" }, status: { phase: "Pending" } },
  },
  {
    resource: "namespaces",
    given: { metadata: { name: "n", labels: { a: "b", "kubernetes.io/metadata.name": "m" } }, status: { phase: "Terminating" } },
    want: {
      metadata: { name: "n", labels: { a: "b", "kubernetes.io/metadata.name": "n" } },
      status: { phase: "Terminating" },
    },
  },
  {
    resource: "persistentvolumes",
    given: { spec: { hostPath: { path: "/x" } } },
    want: {
      spec: { hostPath: { path: "/x", type: "" }, persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem" },
      status: { phase: "Pending" },
    },
  },
  {
    resource: "persistentvolumes",
    given: { spec: { rbd: {}, azureDisk: {}, scaleIO: {}, iscsi: {} } },
    want: {
      spec: {
        rbd: { pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" },
        azureDisk: { cachingMode: "ReadWrite", kind: "Shared", fsType: "ext4", readOnly: false },
        scaleIO: { storageMode: "ThinProvisioned", fsType: "xfs" },
        iscsi: { iscsiInterface: "default" },
        persistentVolumeReclaimPolicy: "Retain",
        volumeMode: "Filesystem",
      },
      status: { phase: "Pending" },
    },
  },
  { resource: "persistentvolumeclaims", given: {}, want: { status: { phase: "Pending" }, spec: { volumeMode: "Filesystem" } } },
  { resource: "secrets", given: { stringData: { a: "x" } }, want: { type: "Opaque", data: { a: "eA==" } } },
  {
    resource: "endpoints",
    given: { subsets: [{ ports: [{ port: 1 }, { port: 2, protocol: "" }] }, {}, { ports: [{ port: 3, protocol: "UDP" }] }] },
    want: {
      subsets: [
        {
          ports: [
            { port: 1, protocol: "TCP" },
            { port: 2, protocol: "TCP" },
          ],
        },
        {},
        { ports: [{ port: 3, protocol: "UDP" }] },
      ],
    },
  },
  {
    resource: "namespaces",
    given: { metadata: { name: "n" } },
    want: { metadata: { name: "n", labels: { "kubernetes.io/metadata.name": "n" } }, status: { phase: "Active" } },
  },
  {
    resource: "nodes",
    given: { spec: { podCIDR: "10.0.0.0/24" }, status: { capacity: { cpu: "1" } } },
    want: {
      spec: { podCIDR: "10.0.0.0/24", podCIDRs: ["10.0.0.0/24"] },
      status: { capacity: { cpu: "1" }, allocatable: { cpu: "1" } },
    },
  },
  {
    resource: "limitranges",
    given: {
      spec: {
        limits: [
          { type: "Container", max: { cpu: "2" }, min: { memory: "1" } },
          { type: "Pod", max: { cpu: "1" } },
        ],
      },
    },
    want: {
      spec: {
        limits: [
          {
            type: "Container",
            max: { cpu: "2" },
            min: { memory: "1" },
            default: { cpu: "2" },
            defaultRequest: { cpu: "2", memory: "1" },
          },
          { type: "Pod", max: { cpu: "1" } },
        ],
      },
    },
  },
  { resource: "resourcequotas", given: { spec: { hard: { cpu: "1u" } } }, want: { spec: { hard: { cpu: "1m" } } } },
  {
    resource: "replicationcontrollers",
    given: { spec: { template: { metadata: { labels: { a: "b" } }, spec: { restartPolicy: "Never" } } } },
    want: {
      spec: {
        template: {
          metadata: { labels: { a: "b" } },
          spec: {
            restartPolicy: "Never",
            dnsPolicy: "ClusterFirst",
            terminationGracePeriodSeconds: 30,
            securityContext: {},
            schedulerName: "default-scheduler",
          },
        },
        selector: { a: "b" },
        replicas: 1,
      },
      metadata: { labels: { a: "b" } },
    },
  },
  {
    resource: "deployments.apps",
    given: {},
    want: {
      spec: {
        replicas: 1,
        strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" } },
        revisionHistoryLimit: 10,
        progressDeadlineSeconds: 600,
        template: {
          spec: {
            dnsPolicy: "ClusterFirst",
            restartPolicy: "Always",
            terminationGracePeriodSeconds: 30,
            securityContext: {},
            schedulerName: "default-scheduler",
          },
        },
      },
    },
  },
  {
    resource: "daemonsets.apps",
    given: {},
    want: {
      metadata: { annotations: { "deprecated.daemonset.template.generation": "0" } },
      spec: {
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
        revisionHistoryLimit: 10,
        template: {
          spec: {
            dnsPolicy: "ClusterFirst",
            restartPolicy: "Always",
            terminationGracePeriodSeconds: 30,
            securityContext: {},
            schedulerName: "default-scheduler",
          },
        },
      },
    },
  },
  {
    resource: "statefulsets.apps",
    given: { spec: { volumeClaimTemplates: [{ spec: {} }] } },
    want: {
      spec: {
        volumeClaimTemplates: [
          { spec: { volumeMode: "Filesystem" }, apiVersion: "v1", kind: "PersistentVolumeClaim", status: { phase: "Pending" } },
        ],
        podManagementPolicy: "OrderedReady",
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
        replicas: 1,
        revisionHistoryLimit: 10,
        template: {
          spec: {
            dnsPolicy: "ClusterFirst",
            restartPolicy: "Always",
            terminationGracePeriodSeconds: 30,
            securityContext: {},
            schedulerName: "default-scheduler",
          },
        },
      },
    },
  },
  ...[
    [{ type: "OnDelete" }, { type: "OnDelete" }],
    [{ type: "RollingUpdate" }, { type: "RollingUpdate" }],
    [
      { type: "RollingUpdate", rollingUpdate: {} },
      { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
    ],
    [{ rollingUpdate: { partition: 3 } }, { type: "RollingUpdate", rollingUpdate: { partition: 3 } }],
    [
      { type: "OnDelete", rollingUpdate: {} },
      { type: "OnDelete", rollingUpdate: {} },
    ],
  ].map(([given, want]) => ({
    resource: "statefulsets.apps",
    given: { spec: { ...workload, podManagementPolicy: "Parallel", updateStrategy: given } },
    want: { spec: { ...workload, podManagementPolicy: "Parallel", updateStrategy: want } },
  })),
  ...[
    [{ type: "OnDelete" }, { type: "OnDelete" }],
    [
      { type: "", rollingUpdate: { maxSurge: 1 } },
      { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } },
    ],
    [{ rollingUpdate: { maxUnavailable: 0 } }, { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 0 } }],
  ].map(([given, want]) => ({
    resource: "daemonsets.apps",
    given: { spec: { ...workload, updateStrategy: given }, metadata: generation("7") },
    want: { spec: { ...workload, updateStrategy: want }, metadata: generation("7") },
  })),
  ...[
    [{ type: "Recreate" }, { type: "Recreate" }],
    [
      { type: "", rollingUpdate: { maxSurge: 1 } },
      { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: 1 } },
    ],
    [{ rollingUpdate: { maxUnavailable: 0 } }, { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: "25%" } }],
  ].map(([given, want]) => ({
    resource: "deployments.apps",
    given: { spec: { ...workload, progressDeadlineSeconds: 0, strategy: given } },
    want: { spec: { ...workload, progressDeadlineSeconds: 0, strategy: want } },
  })),
  {
    resource: "cronjobs.batch",
    given: { spec: { ...cron, jobTemplate: { spec: { template: workload.template } } } },
    want: { spec: { ...cron, jobTemplate: { spec: { template: workload.template } } } },
  },
  {
    resource: "replicasets.apps",
    given: {},
    want: {
      spec: {
        replicas: 1,
        template: {
          spec: {
            dnsPolicy: "ClusterFirst",
            restartPolicy: "Always",
            terminationGracePeriodSeconds: 30,
            securityContext: {},
            schedulerName: "default-scheduler",
          },
        },
      },
    },
  },
  {
    resource: "jobs.batch",
    given: { spec: { template: { metadata: { labels: { a: "b" } } } } },
    want: {
      spec: {
        template: {
          metadata: { labels: { a: "b" } },
          spec: {
            dnsPolicy: "ClusterFirst",
            restartPolicy: "Always",
            terminationGracePeriodSeconds: 30,
            securityContext: {},
            schedulerName: "default-scheduler",
          },
        },
        completions: 1,
        parallelism: 1,
        backoffLimit: 6,
        completionMode: "NonIndexed",
        suspend: false,
      },
      metadata: { labels: { a: "b" } },
    },
  },
  {
    resource: "cronjobs.batch",
    given: {},
    want: {
      spec: {
        concurrencyPolicy: "Allow",
        suspend: false,
        successfulJobsHistoryLimit: 3,
        failedJobsHistoryLimit: 1,
        jobTemplate: {
          spec: {
            template: {
              spec: {
                dnsPolicy: "ClusterFirst",
                restartPolicy: "Always",
                terminationGracePeriodSeconds: 30,
                securityContext: {},
                schedulerName: "default-scheduler",
              },
            },
          },
        },
      },
    },
  },
  {
    resource: "horizontalpodautoscalers.autoscaling",
    given: { spec: { behavior: { scaleDown: { selectPolicy: "Min" } } } },
    want: {
      spec: {
        behavior: {
          scaleDown: { selectPolicy: "Min", policies: [{ type: "Percent", value: 100, periodSeconds: 15 }] },
          scaleUp: {
            stabilizationWindowSeconds: 0,
            selectPolicy: "Max",
            policies: [
              { type: "Pods", value: 4, periodSeconds: 15 },
              { type: "Percent", value: 100, periodSeconds: 15 },
            ],
          },
        },
        minReplicas: 1,
        metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } }],
      },
    },
  },
  {
    resource: "networkpolicies.networking.k8s.io",
    given: { spec: { ingress: [{ ports: [{}] }], egress: [{}] } },
    want: { spec: { ingress: [{ ports: [{ protocol: "TCP" }] }], egress: [{}], policyTypes: ["Ingress", "Egress"] } },
  },
  {
    resource: "networkpolicies.networking.k8s.io",
    given: { spec: { ingress: [{ ports: [{ protocol: "UDP" }, {}] }, { ports: [{}] }], egress: [] } },
    want: {
      spec: {
        ingress: [{ ports: [{ protocol: "UDP" }, { protocol: "TCP" }] }, { ports: [{ protocol: "TCP" }] }],
        egress: [],
        policyTypes: ["Ingress"],
      },
    },
  },
  {
    resource: "networkpolicies.networking.k8s.io",
    given: { spec: { egress: [{ ports: [{ protocol: "SCTP" }, {}] }], policyTypes: ["Egress"] } },
    want: { spec: { egress: [{ ports: [{ protocol: "SCTP" }, { protocol: "TCP" }] }], policyTypes: ["Egress"] } },
  },
  { resource: "networkpolicies.networking.k8s.io", given: {}, want: { spec: { podSelector: {}, policyTypes: ["Ingress"] } } },
  {
    resource: "ingressclasses.networking.k8s.io",
    given: { spec: { parameters: { kind: "A", name: "b", scope: "Namespace" } } },
    want: { spec: { parameters: { kind: "A", name: "b", scope: "Namespace" } } },
  },
  { resource: "ingressclasses.networking.k8s.io", given: { spec: {} }, want: { spec: {} } },
  {
    resource: "ingressclasses.networking.k8s.io",
    given: { spec: { parameters: { kind: "A", name: "b" } } },
    want: { spec: { parameters: { kind: "A", name: "b", scope: "Cluster" } } },
  },
  {
    resource: "rolebindings.rbac.authorization.k8s.io",
    given: {
      roleRef: { kind: "Role", name: "r" },
      subjects: [
        { kind: "User", name: "u" },
        { kind: "ServiceAccount", name: "s" },
      ],
    },
    want: {
      roleRef: { kind: "Role", name: "r", apiGroup: "rbac.authorization.k8s.io" },
      subjects: [
        { kind: "User", name: "u", apiGroup: "rbac.authorization.k8s.io" },
        { kind: "ServiceAccount", name: "s" },
      ],
    },
  },
  { resource: "endpointslices.discovery.k8s.io", given: { ports: [{}] }, want: { ports: [{ name: "", protocol: "TCP" }] } },
  { resource: "priorityclasses.scheduling.k8s.io", given: {}, want: { preemptionPolicy: "PreemptLowerPriority" } },
  { resource: "storageclasses.storage.k8s.io", given: {}, want: { reclaimPolicy: "Delete", volumeBindingMode: "Immediate" } },
  {
    resource: "csidrivers.storage.k8s.io",
    given: {},
    want: {
      spec: {
        attachRequired: true,
        podInfoOnMount: false,
        storageCapacity: false,
        fsGroupPolicy: "ReadWriteOnceWithFSType",
        volumeLifecycleModes: ["Persistent"],
        requiresRepublish: false,
      },
    },
  },
  { resource: "podsecuritypolicies.policy", given: { spec: {} }, want: { spec: { allowPrivilegeEscalation: true } } },
  {
    resource: "validatingwebhookconfigurations.admissionregistration.k8s.io",
    given: { webhooks: [{ clientConfig: { service: {} }, rules: [{}] }] },
    want: {
      webhooks: [
        {
          clientConfig: { service: { port: 443 } },
          rules: [{ scope: "*" }],
          failurePolicy: "Fail",
          matchPolicy: "Equivalent",
          namespaceSelector: {},
          objectSelector: {},
          timeoutSeconds: 10,
        },
      ],
    },
  },
  {
    resource: "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    given: { webhooks: [{}] },
    want: {
      webhooks: [
        {
          failurePolicy: "Fail",
          matchPolicy: "Equivalent",
          namespaceSelector: {},
          objectSelector: {},
          timeoutSeconds: 10,
          reinvocationPolicy: "Never",
        },
      ],
    },
  },
  {
    resource: "apiservices.apiregistration.k8s.io",
    given: { spec: { service: {} } },
    want: { spec: { service: { port: 443 } } },
  },
  {
    resource: "customresourcedefinitions.apiextensions.k8s.io",
    given: { spec: { names: { kind: "Cron" }, conversion: { strategy: "Webhook", webhook: { clientConfig: { service: {} } } } } },
    want: {
      spec: {
        names: { kind: "Cron", singular: "cron", listKind: "CronList" },
        conversion: { strategy: "Webhook", webhook: { clientConfig: { service: { port: 443 } } } },
      },
      status: { storedVersions: [] },
    },
  },
  {
    resource: "customresourcedefinitions.apiextensions.k8s.io",
    given: {
      spec: {
        names: { kind: "Cron", singular: "c", listKind: "Crons" },
        versions: [
          { name: "v1", storage: false },
          { name: "v2", storage: true },
        ],
      },
    },
    want: {
      spec: {
        names: { kind: "Cron", singular: "c", listKind: "Crons" },
        versions: [
          { name: "v1", storage: false },
          { name: "v2", storage: true },
        ],
        conversion: { strategy: "None" },
      },
      status: { storedVersions: ["v2"] },
    },
  },
  {
    resource: "customresourcedefinitions.apiextensions.k8s.io",
    given: { spec: { versions: [{ name: "v2", storage: true }] }, status: { storedVersions: ["v1"] } },
    want: {
      spec: { versions: [{ name: "v2", storage: true }], names: { singular: "" }, conversion: { strategy: "None" } },
      status: { storedVersions: ["v1"] },
    },
  },
  { resource: "customresourcedefinitions.apiextensions.k8s.io", given: {}, want: {} },
  {
    resource: "certificatesigningrequests.certificates.k8s.io",
    given: { spec: { request: "r" } },
    want: { spec: { request: "r" } },
  },
  {
    resource: "certificatesigningrequests.certificates.k8s.io",
    given: { metadata: { uid: "u" }, spec: { request: "r" } },
    want: { metadata: { name: "valid", uid: "u" }, spec: { request: "r", signerName: "kubernetes.io/legacy-unknown" } },
  },
  {
    resource: "certificatesigningrequests.certificates.k8s.io",
    given: { metadata: { uid: "u" }, spec: { signerName: "a.b/c" } },
    want: { metadata: { name: "valid", uid: "u" }, spec: { signerName: "a.b/c" } },
  },
  {
    resource: "flowschemas.flowcontrol.apiserver.k8s.io",
    given: { spec: { matchingPrecedence: 3 } },
    want: { spec: { matchingPrecedence: 3 } },
  },
  {
    resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    given: { spec: { type: "Exempt" } },
    want: { spec: { type: "Exempt" } },
  },
  {
    resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    given: {
      spec: {
        limited: { assuredConcurrencyShares: 1, limitResponse: { queuing: { handSize: 2, queues: 3, queueLengthLimit: 4 } } },
      },
    },
    want: {
      spec: {
        limited: { assuredConcurrencyShares: 1, limitResponse: { queuing: { handSize: 2, queues: 3, queueLengthLimit: 4 } } },
      },
    },
  },
  {
    resource: "csidrivers.storage.k8s.io",
    given: {
      spec: {
        ...{ attachRequired: false, podInfoOnMount: true, storageCapacity: true, requiresRepublish: true },
        ...{ fsGroupPolicy: "None", volumeLifecycleModes: ["Ephemeral"] },
      },
    },
    want: {
      spec: {
        ...{ attachRequired: false, podInfoOnMount: true, storageCapacity: true, requiresRepublish: true },
        ...{ fsGroupPolicy: "None", volumeLifecycleModes: ["Ephemeral"] },
      },
    },
  },
  {
    resource: "storageclasses.storage.k8s.io",
    given: { reclaimPolicy: "Retain", volumeBindingMode: "WaitForFirstConsumer" },
    want: { reclaimPolicy: "Retain", volumeBindingMode: "WaitForFirstConsumer" },
  },
  { resource: "priorityclasses.scheduling.k8s.io", given: { preemptionPolicy: "Never" }, want: { preemptionPolicy: "Never" } },
  {
    resource: "podsecuritypolicies.policy",
    given: { spec: { allowPrivilegeEscalation: false } },
    want: { spec: { allowPrivilegeEscalation: false } },
  },
  {
    resource: "endpointslices.discovery.k8s.io",
    given: { ports: [{ name: "a", protocol: "UDP" }, {}] },
    want: {
      ports: [
        { name: "a", protocol: "UDP" },
        { name: "", protocol: "TCP" },
      ],
    },
  },
  { resource: "flowschemas.flowcontrol.apiserver.k8s.io", given: {}, want: { spec: { matchingPrecedence: 1000 } } },
  {
    resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    given: { spec: { limited: { limitResponse: { type: "Queue", queuing: {} } } } },
    want: {
      spec: {
        limited: {
          limitResponse: { type: "Queue", queuing: { handSize: 8, queues: 64, queueLengthLimit: 50 } },
          assuredConcurrencyShares: 30,
        },
      },
    },
  },
  // Empty values of fields that are no pointers in Go get the default as absent ones do.
  {
    resource: "services",
    given: {
      spec: {
        type: "NodePort",
        sessionAffinity: "",
        externalTrafficPolicy: "",
        ports: [
          { port: 1, protocol: "", targetPort: 0 },
          { port: 2, protocol: "UDP", targetPort: "" },
        ],
      },
    },
    want: {
      spec: {
        type: "NodePort",
        sessionAffinity: "None",
        externalTrafficPolicy: "Cluster",
        internalTrafficPolicy: "Cluster",
        ports: [
          { port: 1, protocol: "TCP", targetPort: 1 },
          { port: 2, protocol: "UDP", targetPort: 2 },
        ],
      },
    },
  },
  {
    resource: "persistentvolumes",
    given: { spec: { persistentVolumeReclaimPolicy: "", volumeMode: "" }, status: { phase: "" } },
    want: { spec: { persistentVolumeReclaimPolicy: "Retain", volumeMode: "" }, status: { phase: "Pending" } },
  },
  {
    resource: "persistentvolumeclaims",
    given: { spec: { volumeMode: "" }, status: { phase: "" } },
    want: { spec: { volumeMode: "" }, status: { phase: "Pending" } },
  },
  {
    resource: "secrets",
    given: { type: "", data: { a: "eA==" }, stringData: {} },
    want: { type: "Opaque", data: { a: "eA==" } },
  },
  {
    resource: "resourcequotas",
    given: { status: { hard: { cpu: "1u" }, used: { cpu: "1500u" } } },
    want: { status: { hard: { cpu: "1m" }, used: { cpu: "2m" } } },
  },
  {
    resource: "statefulsets.apps",
    given: { spec: { ...workload, podManagementPolicy: "", updateStrategy: { type: "" } } },
    want: {
      spec: {
        ...workload,
        podManagementPolicy: "OrderedReady",
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
      },
    },
  },
  {
    resource: "cronjobs.batch",
    given: { spec: { ...cron, concurrencyPolicy: "", jobTemplate: { spec: { template: workload.template } } } },
    want: { spec: { ...cron, concurrencyPolicy: "Allow", jobTemplate: { spec: { template: workload.template } } } },
  },
  {
    resource: "flowschemas.flowcontrol.apiserver.k8s.io",
    given: { spec: { matchingPrecedence: 0 } },
    want: { spec: { matchingPrecedence: 1000 } },
  },
  {
    resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    given: {
      spec: {
        limited: { assuredConcurrencyShares: 0, limitResponse: { queuing: { handSize: 0, queues: 0, queueLengthLimit: 0 } } },
      },
    },
    want: {
      spec: {
        limited: { assuredConcurrencyShares: 30, limitResponse: { queuing: { handSize: 8, queues: 64, queueLengthLimit: 50 } } },
      },
    },
  },
  {
    resource: "clusterrolebindings.rbac.authorization.k8s.io",
    given: { roleRef: { apiGroup: "" }, subjects: [{ kind: "Group", apiGroup: "" }] },
    want: {
      roleRef: { apiGroup: "rbac.authorization.k8s.io" },
      subjects: [{ kind: "Group", apiGroup: "rbac.authorization.k8s.io" }],
    },
  },
  {
    resource: "customresourcedefinitions.apiextensions.k8s.io",
    given: {
      spec: { versions: [{ name: "v1", storage: true }], names: { singular: "", listKind: "" } },
      status: { storedVersions: [] },
    },
    want: {
      spec: {
        versions: [{ name: "v1", storage: true }],
        names: { singular: "", listKind: "" },
        conversion: { strategy: "None" },
      },
      status: { storedVersions: ["v1"] },
    },
  },
  {
    resource: "persistentvolumes",
    given: {
      spec: {
        rbd: { pool: "", user: "", keyring: "" },
        iscsi: { iscsiInterface: "" },
        scaleIO: { storageMode: "", fsType: "" },
        azureDisk: {},
        hostPath: {},
      },
    },
    want: {
      spec: {
        rbd: { pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" },
        iscsi: { iscsiInterface: "default" },
        scaleIO: { storageMode: "ThinProvisioned", fsType: "xfs" },
        azureDisk: { cachingMode: "ReadWrite", kind: "Shared", fsType: "ext4", readOnly: false },
        hostPath: { type: "" },
        persistentVolumeReclaimPolicy: "Retain",
        volumeMode: "Filesystem",
      },
      status: { phase: "Pending" },
    },
  },
  {
    resource: "persistentvolumes",
    given: { spec: { azureDisk: { cachingMode: "", kind: "", fsType: "", readOnly: true } } },
    want: {
      spec: {
        azureDisk: { cachingMode: "", kind: "", fsType: "", readOnly: true },
        persistentVolumeReclaimPolicy: "Retain",
        volumeMode: "Filesystem",
      },
      status: { phase: "Pending" },
    },
  },
  {
    resource: "statefulsets.apps",
    given: { spec: { ...workload, volumeClaimTemplates: [{ apiVersion: "v2", kind: "Volume", spec: { volumeMode: "Block" } }] } },
    want: {
      spec: {
        ...workload,
        podManagementPolicy: "OrderedReady",
        updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
        volumeClaimTemplates: [
          { apiVersion: "v1", kind: "PersistentVolumeClaim", spec: { volumeMode: "Block" }, status: { phase: "Pending" } },
        ],
      },
    },
  },
  // Pointers keep them.
  {
    resource: "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    given: {
      webhooks: [
        {
          ...{ failurePolicy: "", matchPolicy: "", timeoutSeconds: 0, reinvocationPolicy: "" },
          ...{ clientConfig: { service: { port: 0 } }, rules: [{ scope: "" }], namespaceSelector: {}, objectSelector: {} },
        },
      ],
    },
    want: {
      webhooks: [
        {
          ...{ failurePolicy: "", matchPolicy: "", timeoutSeconds: 0, reinvocationPolicy: "" },
          ...{ clientConfig: { service: { port: 0 } }, rules: [{ scope: "" }], namespaceSelector: {}, objectSelector: {} },
        },
      ],
    },
  },
  {
    resource: "apiservices.apiregistration.k8s.io",
    given: { spec: { service: { port: 0 } } },
    want: { spec: { service: { port: 0 } } },
  },
  {
    resource: "ingressclasses.networking.k8s.io",
    given: { spec: { parameters: { scope: "" } } },
    want: { spec: { parameters: { scope: "" } } },
  },
  {
    resource: "storageclasses.storage.k8s.io",
    given: { reclaimPolicy: "", volumeBindingMode: "" },
    want: { reclaimPolicy: "", volumeBindingMode: "" },
  },
  {
    resource: "horizontalpodautoscalers.autoscaling",
    given: { spec: { minReplicas: 0, metrics: [] } },
    want: {
      spec: {
        minReplicas: 0,
        metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } }],
      },
    },
  },
  {
    resource: "networkpolicies.networking.k8s.io",
    given: { spec: { egress: [{ ports: [{ protocol: "" }] }], policyTypes: [] } },
    want: { spec: { egress: [{ ports: [{ protocol: "" }] }], policyTypes: ["Ingress", "Egress"] } },
  },
  {
    resource: "csidrivers.storage.k8s.io",
    given: { spec: { fsGroupPolicy: "", volumeLifecycleModes: [] } },
    want: {
      spec: {
        ...{ fsGroupPolicy: "", volumeLifecycleModes: ["Persistent"], attachRequired: true },
        ...{ podInfoOnMount: false, storageCapacity: false, requiresRepublish: false },
      },
    },
  },
];

const { convert } = conversionsOf(resourcesForTests);
const coerced = (object: KubeObject, gvk: GroupVersionKind): KubeObject => {
  const type = scheme.kind(gvk);
  return type === undefined ? object : coerce(object, type);
};

test("an object has the same defaults in each version", () => {
  let others = 0;
  for (const { group, resource, kind, hub, hubGroup = group, versions } of resourcesForTests) {
    const own = versions.find(({ version }) => version === hub);
    if (own === undefined || versions.length === 1) continue;
    const gvk = { group: hubGroup, version: hub };
    const named = group === "" ? resource : `${resource}.${group}`;
    const ofKind = rows.filter((row) => row.resource === named).map((row) => row.given);
    const given = ofKind.filter((one) => !JSON.stringify(one).includes('"behavior"')); // has defaults in the versions of autoscaling/v2 alone
    for (const fields of [smallestObjects[resource] ?? {}, ...given]) {
      const sent = (): KubeObject => {
        const object = { apiVersion: formatGroupVersion(gvk), kind, ...structuredClone(fields), metadata: { name: "a" } };
        return coerced(object, { ...gvk, kind });
      };
      const want = sent();
      own.defaults?.(want);
      for (const { version, defaults } of versions.filter((one) => one !== own)) {
        const other = convert(sent(), { group, version });
        defaults?.(other);
        assert.deepEqual(
          convert(other, gvk),
          coerced(want, { ...gvk, kind }),
          `${group}/${version} ${kind} ${JSON.stringify(fields)}`,
        );
        others++;
      }
    }
  }
  assert.ok(others > 30, String(others));
});

for (const { resource, given, want } of rows) {
  test(`${resource}: defaults of ${JSON.stringify(given)}`, () => {
    const { name, ...metadata } = defaultsOf(resource, given).metadata;
    assert.ok(name);
    const meta = "metadata" in given ? { name, ...metadata } : metadata;
    const { metadata: _, ...rest } = defaultsOf(resource, given);
    assert.deepEqual(JSON.parse(JSON.stringify({ ...(Object.keys(meta).length > 0 ? { metadata: meta } : {}), ...rest })), want);
  });
}
