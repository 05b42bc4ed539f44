import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { conditionOfType, earlier, eventAbout, later, ownedBy, stored, testExplanations } from "../testing.ts";

const selector = { matchLabels: { app: "web" } };
const recent = "2026-03-01T11:59:55Z";

const workload = (kind: string, spec: object, status: object = {}, metadata: object = {}): Unstructured =>
  stored("apps/v1", kind, "web", {
    metadata: { generation: 1, ...metadata },
    spec: { replicas: 2, selector, ...spec },
    status: { observedGeneration: 1, ...status },
  });
const aPod = (name: string, isReady: boolean, owner: object, metadata: object = {}): Unstructured =>
  stored("v1", "Pod", name, {
    metadata: { labels: { app: "web" }, ...owner, ...metadata },
    spec: { nodeName: "n1", containers: [{ name: "main", image: "i" }] },
    status: {
      phase: "Running",
      startTime: earlier,
      conditions: [{ type: "Ready", status: isReady ? "True" : "False", lastTransitionTime: earlier }],
      containerStatuses: [{ name: "main", ready: isReady, restartCount: 0, state: { running: {} } }],
    },
  });
const ofWeb = (kind: string, apiVersion?: string): object => ownedBy(kind, "web", apiVersion);
const aReplicaSet = (name: string, revision: number, replicas: number, status: object = {}): Unstructured =>
  stored("apps/v1", "ReplicaSet", name, {
    metadata: {
      ...{ generation: 1, labels: { app: "web" }, annotations: { "deployment.kubernetes.io/revision": `${revision}` } },
      ...ofWeb("Deployment"),
    },
    spec: { replicas, selector },
    status: { observedGeneration: 1, ...status },
  });
const available = { replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 };

testExplanations([
  { name: "a deployment without replicas is healthy", objects: [workload("Deployment", { replicas: 0 })], chain: [] },
  {
    name: "a paused deployment that is complete is healthy",
    objects: [workload("Deployment", { paused: true }, available)],
    chain: [],
  },
  ...["Deployment", "StatefulSet", "ReplicaSet"].map((kind) => ({
    name: `a ${kind} that does not say how many it wants, wants one`,
    objects: [workload(kind, { replicas: undefined }, { updatedReplicas: 0 })],
    chain: [`${kind.toLowerCase()}/web`],
    says: /^wants 1\b/,
  })),
  {
    name: "a ReplicaSet with the one pod that it wants by default, after an earlier failure, is healthy",
    objects: [
      workload(
        "ReplicaSet",
        { replicas: undefined },
        {
          replicas: 1,
          availableReplicas: 1,
          ...conditionOfType("ReplicaFailure", "True", "FailedCreate"),
        },
      ),
    ],
    chain: [],
  },
  {
    name: "a stateful set of one pod by default that is updated on deletion counts it",
    objects: [
      workload(
        "StatefulSet",
        { replicas: undefined, updateStrategy: { type: "OnDelete" } },
        { readyReplicas: 1, currentRevision: "a", updateRevision: "b" },
      ),
    ],
    chain: ["statefulset/web"],
    says: /: 1 pod still on an older template/,
  },
  {
    name: "a failure of a ReplicaSet without a reason is one of its replicas",
    objects: [workload("ReplicaSet", {}, { conditions: [{ type: "ReplicaFailure", status: "True" }] })],
    chain: ["replicaset/web"],
    reason: "ReplicaFailure",
  },
  {
    name: "a daemon set whose affinity matches no node",
    objects: [
      workload(
        "DaemonSet",
        {
          template: {
            spec: {
              containers: [],
              affinity: {
                nodeAffinity: {
                  requiredDuringSchedulingIgnoredDuringExecution: {
                    nodeSelectorTerms: [{ matchExpressions: [{ key: "gone", operator: "Exists" }] }],
                  },
                },
              },
            },
          },
        },
        { desiredNumberScheduled: 0 },
      ),
      ...["n1", "n2"].map((name) => stored("v1", "Node", name, { spec: {} })),
    ],
    chain: ["daemonset/web"],
    says: /^its node selector and affinity matches none of 2 nodes$/,
  },
  {
    name: "a deployment that is not available counts its available pods",
    objects: [workload("Deployment", {}, { ...available, availableReplicas: 1 })],
    chain: ["deployment/web"],
    reason: "RolloutNotComplete",
    says: /^wants 2, has 1 available$/,
  },
  {
    name: "a deployment with old pods counts those to be removed",
    objects: [workload("Deployment", {}, { ...available, replicas: 3 })],
    chain: ["deployment/web"],
    says: /^1 pod of older templates still to be removed$/,
  },
  {
    name: "a deployment that has missed its deadline says so",
    objects: [
      workload("Deployment", {}, { updatedReplicas: 1, ...conditionOfType("Progressing", "False", "ProgressDeadlineExceeded") }),
    ],
    chain: ["deployment/web"],
    reason: "ProgressDeadlineExceeded",
    says: /has 1 pod of its latest template; the rollout has made no progress/,
    since: earlier,
  },
  {
    name: "a deployment that is not available tells since when, not since when it makes progress",
    objects: [
      workload(
        "Deployment",
        {},
        {
          updatedReplicas: 1,
          conditions: [
            { type: "Progressing", status: "True", lastTransitionTime: earlier },
            { type: "Available", status: "False", lastTransitionTime: later },
          ],
        },
      ),
    ],
    chain: ["deployment/web"],
    since: later,
  },
  {
    name: "a deployment leads to its newest ReplicaSet first, by the number of its revision, and to none without pods",
    objects: [
      workload("Deployment", {}, { updatedReplicas: 1 }),
      aReplicaSet("web-9", 9, 1, { replicas: 0 }),
      aReplicaSet("web-10", 10, 1, { replicas: 0 }),
      aReplicaSet("web-11", 11, 0, { replicas: 0 }),
    ],
    chain: ["deployment/web", "replicaset/web-10"],
  },
  {
    name: "a change that the controller has had 15 seconds for is not processed",
    objects: [workload("Deployment", {}, available, { generation: 2, managedFields: [{ time: later }, { time: earlier }] })],
    chain: ["deployment/web"],
    reason: "ControllerAway",
    since: later,
  },
  {
    name: "a change of 5 seconds ago is not missed yet",
    objects: [workload("Deployment", {}, available, { generation: 2, managedFields: [{ time: earlier }, { time: recent }] })],
    chain: [],
  },
  {
    name: "a ReplicaSet whose failure is not one of creating pods says it",
    objects: [aReplicaSet("web-1", 1, 2, { replicas: 1, ...conditionOfType("ReplicaFailure", "True", "FailedDelete", "stuck") })],
    chain: ["replicaset/web-1"],
    reason: "FailedDelete",
    says: /^stuck$/,
  },
  {
    name: "a ReplicaSet that has all its pods in spite of an earlier failure is healthy",
    objects: [aReplicaSet("web-1", 1, 2, { ...available, ...conditionOfType("ReplicaFailure", "True", "FailedCreate") })],
    chain: ["replicaset/web-1"],
    reason: "OwnerGone",
  },
  {
    name: "a ReplicaSet that waits for minReadySeconds says for how long",
    objects: [workload("ReplicaSet", { minReadySeconds: 30 }, { ...available, availableReplicas: 1 })],
    chain: ["replicaset/web"],
    reason: "NotAllReady",
    says: /wants 2 pods, has 2, of which 2 ready and 1 available, until they were ready for 30 s$/,
  },
  {
    name: "a ReplicaSet with more pods than it wants is not healthy",
    objects: [workload("ReplicaSet", {}, { ...available, replicas: 3, availableReplicas: 3 })],
    chain: ["replicaset/web"],
    says: /has 3/,
  },
  {
    name: "a ReplicaSet leads to a pod that is not ready, one that is being deleted comes last",
    objects: [
      workload("ReplicaSet", {}, { replicas: 2 }),
      aPod("web-a", false, ofWeb("ReplicaSet"), { deletionTimestamp: later, finalizers: ["x/y"] }),
      aPod("web-b", false, ofWeb("ReplicaSet")),
      stored("v1", "Node", "n1", { spec: {}, status: conditionOfType("Ready", "True", "X") }),
    ],
    chain: ["replicaset/web", "pod/web-b"],
  },
  {
    name: "a replication controller selects its pods by a map",
    objects: [
      stored("v1", "ReplicationController", "web", {
        metadata: { generation: 1 },
        spec: { replicas: 1, selector: { app: "web" } },
        status: { observedGeneration: 1, replicas: 1 },
      }),
      aPod("web-a", false, ofWeb("ReplicationController", "v1")),
      stored("v1", "Node", "n1", { spec: {}, status: conditionOfType("Ready", "True", "X") }),
    ],
    chain: ["replicationcontroller/web", "pod/web-a"],
  },
  {
    name: "a stateful set waits for its lowest pod that is not ready, by its number",
    objects: [
      workload("StatefulSet", { replicas: 12 }, { replicas: 11, readyReplicas: 9 }),
      aPod("web-10", false, ofWeb("StatefulSet")),
      aPod("web-9", false, ofWeb("StatefulSet")),
    ],
    chain: ["statefulset/web", "pod/web-9"],
  },
  {
    name: "a stateful set says for which pod the next one waits",
    hidden: ["nodes"],
    objects: [
      workload("StatefulSet", { replicas: 2 }, { replicas: 1, readyReplicas: 0 }),
      { ...aPod("web-0", true, ofWeb("StatefulSet")), status: {} } as never,
    ],
    chain: ["statefulset/web"],
    says: /^wants 2, has 0 ready: the next pod is created when web-0 is ready$/,
  },
  {
    name: "a stateful set does not wait for a pod that is done",
    hidden: ["nodes"],
    objects: [
      workload("StatefulSet", { replicas: 3 }, { replicas: 2, readyReplicas: 0 }),
      { ...aPod("web-0", true, ofWeb("StatefulSet")), status: { phase: "Succeeded" } } as never,
      { ...aPod("web-1", true, ofWeb("StatefulSet")), status: {} } as never,
    ],
    chain: ["statefulset/web"],
    says: /when web-1 is ready$/,
  },
  {
    name: "a parallel stateful set does not wait for one",
    hidden: ["nodes"],
    objects: [
      workload("StatefulSet", { podManagementPolicy: "Parallel" }, { replicas: 1 }),
      { ...aPod("web-0", true, ofWeb("StatefulSet")), status: {} } as never,
    ],
    chain: ["statefulset/web"],
    says: /has 0 ready$/,
  },
  {
    name: "a stateful set whose pod cannot be created says why",
    objects: [workload("StatefulSet", {}, {})],
    events: [
      eventAbout("StatefulSet", "web", "FailedCreate", "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"),
    ],
    chain: ["statefulset/web"],
    says: /^pods cannot be created/,
  },
  {
    name: "a stateful set whose pod was created after a failure is only not ready",
    objects: [workload("StatefulSet", {}, {})],
    events: [
      eventAbout("StatefulSet", "web", "SuccessfulCreate", "ok", later),
      eventAbout("StatefulSet", "web", "FailedCreate", "exceeded quota"),
    ],
    chain: ["statefulset/web"],
    reason: "NotAllReady",
  },
  {
    name: "a stateful set that is updated on deletion counts the pods that are still to be deleted",
    objects: [
      workload(
        "StatefulSet",
        { updateStrategy: { type: "OnDelete" } },
        { readyReplicas: 2, currentRevision: "a", updateRevision: "b" },
      ),
    ],
    chain: ["statefulset/web"],
    reason: "UpdateOnDelete",
    says: /: 2 pods still on an older template/,
  },
  {
    name: "a partition keeps the lower pods of a stateful set",
    objects: [
      workload(
        "StatefulSet",
        { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
        { readyReplicas: 2, updatedReplicas: 1, currentRevision: "a", updateRevision: "b" },
      ),
    ],
    chain: ["statefulset/web"],
    reason: "UpdatePartition",
    says: /partition 1 keeps the pods web-0 to web-0 at/,
  },
  {
    name: "a stateful set is healthy while an update goes on without a partition",
    objects: [workload("StatefulSet", {}, { readyReplicas: 2, updatedReplicas: 1, currentRevision: "a", updateRevision: "b" })],
    chain: [],
  },
  {
    name: "a stateful set with a partition is healthy when all of its pods are updated",
    objects: [
      workload(
        "StatefulSet",
        { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
        { readyReplicas: 2, updatedReplicas: 2, currentRevision: "a", updateRevision: "b" },
      ),
    ],
    chain: [],
  },
  {
    name: "a daemon set that is tolerated nowhere is told apart from one that selects no node",
    objects: [
      workload("DaemonSet", { template: { spec: { containers: [] } } }, { desiredNumberScheduled: 0 }),
      stored("v1", "Node", "n1", { spec: {} }),
    ],
    chain: ["daemonset/web"],
    reason: "NoNodeMatches",
    says: /wants no pod on any of 1 node: their taints are not tolerated/,
  },
  {
    name: "a daemon set in a cluster without nodes is healthy",
    objects: [workload("DaemonSet", { template: { spec: { containers: [] } } }, { desiredNumberScheduled: 0 })],
    chain: [],
  },
  {
    name: "a daemon set whose nodes may not be listed is healthy",
    objects: [
      workload("DaemonSet", { template: { spec: { containers: [] } } }, { desiredNumberScheduled: 0 }),
      stored("v1", "Node", "n1", { spec: {} }),
    ],
    hidden: ["nodes"],
    chain: [],
  },
  {
    name: "a daemon set with a pod that is not ready counts the ready ones",
    objects: [workload("DaemonSet", {}, { desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 1 })],
    chain: ["daemonset/web"],
    reason: "NotAllReady",
    says: /wants a pod on 2 nodes, has 1 ready/,
  },
  {
    name: "a daemon set whose pod cannot be created says why",
    objects: [workload("DaemonSet", {}, { desiredNumberScheduled: 2, currentNumberScheduled: 1, numberReady: 1 })],
    events: [eventAbout("DaemonSet", "web", "FailedCreate", "no")],
    chain: ["daemonset/web"],
    reason: "FailedCreate",
  },
  {
    name: "a daemon set that is updated on deletion counts the pods that are still to be deleted",
    objects: [
      workload(
        "DaemonSet",
        { updateStrategy: { type: "OnDelete" } },
        { desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 2, updatedNumberScheduled: 1 },
      ),
    ],
    chain: ["daemonset/web"],
    reason: "UpdateOnDelete",
    says: /: 1 pod still on an older/,
  },
]);

const aJob = (spec: object, status: object = {}, metadata: object = {}, name = "work"): Unstructured =>
  stored("batch/v1", "Job", name, { metadata, spec: { selector: { matchLabels: { app: "web" } }, ...spec }, status });
const jobPod = (isReady: boolean): Unstructured => aPod("work-a", isReady, ownedBy("Job", "work", "batch/v1"));
const goodNode = stored("v1", "Node", "n1", { spec: {}, status: conditionOfType("Ready", "True", "X") });

testExplanations([
  {
    name: "a job that is complete is healthy",
    objects: [aJob({}, conditionOfType("Complete", "True", "")), jobPod(false)],
    chain: [],
  },
  { name: "a job whose pod is ready is healthy", objects: [aJob({}, { active: 1 }), jobPod(true), goodNode], chain: [] },
  {
    name: "a job that has run out of time does not lead to the pods that it ended",
    objects: [aJob({ activeDeadlineSeconds: 5 }, conditionOfType("Failed", "True", "DeadlineExceeded")), jobPod(false), goodNode],
    chain: ["job/work"],
    says: /has failed \(activeDeadlineSeconds 5\): why/,
  },
  {
    name: "a job that has failed too often names its limit, by default 6",
    objects: [aJob({}, conditionOfType("Failed", "True", "BackoffLimitExceeded"))],
    chain: ["job/work"],
    says: /has failed \(backoffLimit 6\)/,
  },
  {
    name: "a suspended job says since when",
    objects: [aJob({ suspend: true }, conditionOfType("Suspended", "True", ""))],
    chain: ["job/work"],
    reason: "JobSuspended",
    since: earlier,
  },
  {
    name: "a job without parallelism runs no pods",
    objects: [aJob({ parallelism: 0 })],
    chain: ["job/work"],
    reason: "NoParallelism",
  },
  {
    name: "a job whose pods cannot be created says why before anything else",
    objects: [aJob({ parallelism: 0 })],
    events: [eventAbout("Job", "work", "FailedCreate", "no")],
    chain: ["job/work"],
    reason: "FailedCreate",
  },
  {
    name: "a job that the controller has not begun for 15 seconds is not processed",
    objects: [aJob({})],
    chain: ["job/work"],
    reason: "ControllerAway",
  },
  { name: "a job that has begun waits for its pods", objects: [aJob({}, { startTime: earlier })], chain: [] },
  { name: "a new job is not unprocessed yet", objects: [aJob({}, {}, { creationTimestamp: recent })], chain: [] },
  { name: "a job whose pods may not be listed is healthy", objects: [aJob({})], hidden: ["pods"], chain: [] },
  {
    name: "a job leads to its pod that is not ready",
    objects: [aJob({ completions: 3 }, { succeeded: 1, failed: 1, active: 1, startTime: earlier }), jobPod(false), goodNode],
    chain: ["job/work", "pod/work-a"],
  },
]);

const aCronJob = (spec: object = {}, status: object = {}): Unstructured =>
  stored("batch/v1", "CronJob", "nightly", { spec: { schedule: "0 0 * * *", concurrencyPolicy: "Forbid", ...spec }, status });
const jobOf = (name: string, status: object, creationTimestamp = earlier): Unstructured =>
  aJob({}, status, { creationTimestamp, ...ownedBy("CronJob", "nightly", "batch/v1") }, name);
const about = (reason: string, time?: string) => eventAbout("CronJob", "nightly", reason, "the message", time);
const failed = conditionOfType("Failed", "True", "BackoffLimitExceeded");
const complete = conditionOfType("Complete", "True", "");

testExplanations([
  { name: "a cron job that has run is healthy", objects: [aCronJob(), jobOf("n-1", complete)], chain: [] },
  {
    name: "a cron job whose schedule cannot be read",
    objects: [aCronJob()],
    events: [about("UnparseableSchedule")],
    chain: ["cronjob/nightly"],
    reason: "InvalidSchedule",
    says: /"0 0 \* \* \*" cannot be read: the message/,
  },
  {
    name: "a cron job waits for the job that is still active",
    objects: [aCronJob({}, { active: [{ uid: "uid-n-1" }] }), jobOf("n-1", complete), jobOf("n-2", complete)],
    events: [about("JobAlreadyActive")],
    chain: ["cronjob/nightly"],
    says: /starts no job while n-1 is still active \(concurrencyPolicy Forbid\)/,
  },
  {
    name: "a cron job whose active job has ended is healthy",
    objects: [aCronJob(), jobOf("n-1", complete)],
    events: [about("JobAlreadyActive")],
    chain: [],
  },
  {
    name: "a cron job that has missed a start says so",
    objects: [aCronJob()],
    events: [about("MissSchedule")],
    chain: ["cronjob/nightly"],
    reason: "MissSchedule",
    remedy: /startingDeadlineSeconds \(none\)/,
  },
  {
    name: "a cron job that has succeeded since it missed a start is healthy",
    objects: [aCronJob({}, { lastSuccessfulTime: later })],
    events: [about("MissSchedule")],
    chain: [],
  },
  {
    name: "a cron job that has started one since it missed a start is healthy",
    objects: [aCronJob({}, { lastScheduleTime: later })],
    events: [about("MissSchedule")],
    chain: [],
  },
  {
    name: "a job that a cron job has started since it waited is not what it waits for",
    objects: [
      aCronJob({}, { active: [{ uid: "uid-n-2" }], lastScheduleTime: later }),
      jobOf("n-1", complete),
      jobOf("n-2", { startTime: later }, later),
    ],
    events: [about("JobAlreadyActive")],
    chain: [],
  },
  {
    name: "a cron job that cannot create its job",
    objects: [aCronJob()],
    events: [about("FailedCreate")],
    chain: ["cronjob/nightly"],
    reason: "FailedCreate",
  },
  {
    name: "a cron job that has created one since is healthy",
    objects: [aCronJob({}, { lastScheduleTime: later })],
    events: [about("FailedCreate")],
    chain: [],
  },
  {
    name: "a cron job leads to its last job, in whatever order they are listed",
    objects: [aCronJob(), jobOf("n-2", failed, later), jobOf("n-1", complete)],
    chain: ["cronjob/nightly", "job/n-2"],
  },
  {
    name: "a cron job that waits for two jobs names both",
    objects: [
      aCronJob({}, { active: [{ uid: "uid-n-1" }, { uid: "uid-n-2" }] }),
      jobOf("n-1", complete),
      jobOf("n-2", complete, later),
    ],
    events: [about("JobAlreadyActive")],
    chain: ["cronjob/nightly"],
    says: /while n-2, n-1 is still active/,
  },
  {
    name: "a cron job leads to its last job, when that has failed",
    objects: [aCronJob(), jobOf("n-1", complete), jobOf("n-2", failed, later)],
    chain: ["cronjob/nightly", "job/n-2"],
  },
  {
    name: "an earlier job of a cron job that has failed is no cause",
    objects: [aCronJob(), jobOf("n-1", failed), jobOf("n-2", complete, later)],
    chain: [],
  },
  {
    name: "a job of another cron job is no cause",
    objects: [aCronJob(), aJob({}, failed, ownedBy("CronJob", "other", "batch/v1"))],
    chain: [],
  },
]);

const aScaler = (status: object): Unstructured =>
  stored("autoscaling/v2", "HorizontalPodAutoscaler", "web", {
    spec: { scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, maxReplicas: 3 },
    status,
  });
const target = workload("Deployment", { replicas: 0 });
const metricsApi = stored("apiregistration.k8s.io/v1", "APIService", "v1beta1.metrics.k8s.io", { spec: {} });
const inactive = (reason: string, message: string): object => conditionOfType("ScalingActive", "False", reason, message);
const aBudget = (spec: object, status: object): Unstructured =>
  stored("policy/v1", "PodDisruptionBudget", "web", { spec: { selector, ...spec }, status });
const healthy = { currentHealthy: 2, desiredHealthy: 2, expectedPods: 2, disruptionsAllowed: 0 };
const aQuota = (hard: object, used: object): Unstructured =>
  stored("v1", "ResourceQuota", "q", { spec: {}, status: { hard, used } });

testExplanations([
  { name: "an autoscaler that scales is healthy", objects: [aScaler({}), target, metricsApi], chain: [] },
  {
    name: "an autoscaler that cannot scale says why",
    objects: [aScaler(conditionOfType("AbleToScale", "False", "FailedGetScale")), target],
    chain: ["horizontalpodautoscaler/web"],
    reason: "FailedGetScale",
    says: /cannot scale deployment\/web: why/,
  },
  {
    name: "an autoscaler of a target without replicas does nothing",
    objects: [aScaler(inactive("ScalingDisabled", "x")), target, metricsApi],
    chain: ["horizontalpodautoscaler/web"],
    reason: "ScalingDisabled",
    remedy: /--replicas=1/,
  },
  {
    name: "an autoscaler without the metrics API names it",
    objects: [aScaler(inactive("FailedGetResourceMetric", "x")), target],
    chain: ["horizontalpodautoscaler/web"],
    reason: "MetricsApiAway",
  },
  {
    name: "an autoscaler whose metrics API does not answer says so though it is registered",
    objects: [
      aScaler(inactive("FailedGetResourceMetric", "the server could not find the requested resource")),
      target,
      metricsApi,
    ],
    chain: ["horizontalpodautoscaler/web"],
    reason: "MetricsApiAway",
  },
  {
    name: "an autoscaler by a metric of another API does not miss the metrics API",
    objects: [aScaler(inactive("FailedGetExternalMetric", "the server could not find the requested resource")), target],
    chain: ["horizontalpodautoscaler/web"],
    reason: "FailedGetExternalMetric",
    says: /gets no metrics: the server could not find/,
  },
  {
    name: "an autoscaler by a container's metric without the metrics API names it",
    objects: [aScaler(inactive("FailedGetContainerResourceMetric", "x")), target],
    chain: ["horizontalpodautoscaler/web"],
    reason: "MetricsApiAway",
  },
  {
    name: "an autoscaler without metrics says so",
    objects: [aScaler(inactive("FailedGetObjectMetric", "none")), target, metricsApi],
    chain: ["horizontalpodautoscaler/web"],
    reason: "FailedGetObjectMetric",
    says: /gets no metrics: none/,
  },
  {
    name: "an autoscaler that wants more than its limit says so",
    objects: [aScaler(conditionOfType("ScalingLimited", "True", "TooManyReplicas")), target, metricsApi],
    chain: ["horizontalpodautoscaler/web"],
    reason: "TooManyReplicas",
    says: /maxReplicas \(3\)/,
  },
  {
    name: "an autoscaler that wants fewer than its least is healthy",
    objects: [aScaler(conditionOfType("ScalingLimited", "True", "TooFewReplicas")), target, metricsApi],
    chain: [],
  },
  {
    name: "an autoscaler leads to its target",
    objects: [aScaler({}), workload("Deployment", {}, { updatedReplicas: 1 }), metricsApi],
    chain: ["horizontalpodautoscaler/web", "deployment/web"],
  },
  {
    name: "an autoscaler that is well has an owner that is gone",
    objects: [
      {
        ...aScaler({}),
        metadata: { name: "web", namespace: "default", uid: "u", ...ownedBy("Deployment", "gone") },
      } as never,
      target,
      metricsApi,
    ],
    chain: ["horizontalpodautoscaler/web"],
    reason: "OwnerGone",
  },
  {
    name: "an autoscaler without a message has that of the event",
    objects: [aScaler({ conditions: [{ type: "ScalingActive", status: "False", reason: "FailedGetResourceMetric" }] }), target],
    events: [eventAbout("HorizontalPodAutoscaler", "web", "FailedGetResourceMetric", "missing request for memory")],
    chain: ["horizontalpodautoscaler/web"],
    reason: "RequestMissing",
    says: /has no memory request/,
  },
  {
    name: "an autoscaler of a kind that is not served",
    objects: [
      stored("autoscaling/v2", "HorizontalPodAutoscaler", "web", {
        spec: { scaleTargetRef: { apiVersion: "x.example/v1", kind: "Thing", name: "t" }, maxReplicas: 3 },
      }),
    ],
    chain: ["horizontalpodautoscaler/web"],
    reason: "TargetMissing",
    says: /^its target thing\/t does not exist$/,
  },
  {
    name: "a metric whose API is named in the message is away, though it is registered and healthy",
    objects: [aScaler(inactive("FailedGetResourceMetric", "no answer from metrics.k8s.io")), target, metricsApi],
    chain: ["horizontalpodautoscaler/web"],
    reason: "MetricsApiAway",
  },
  {
    name: "a quota without a limit of its own in the status has that of the spec",
    objects: [
      stored("v1", "ResourceQuota", "q", { spec: { hard: { pods: "1", services: "2" } }, status: { used: { pods: "1" } } }),
    ],
    chain: ["resourcequota/q"],
    says: /^is used up: pods \(1 of 1\)$/,
  },
  {
    name: "a budget without pods protects nothing",
    objects: [aBudget({ minAvailable: 1 }, {})],
    chain: ["poddisruptionbudget/web"],
    reason: "SelectorMatchesNone",
    says: /app=web/,
  },
  {
    name: "a budget whose pods may not be listed is judged by its status",
    objects: [aBudget({ minAvailable: 1 }, { ...healthy, disruptionsAllowed: 1 })],
    hidden: ["pods"],
    chain: [],
  },
  {
    name: "a budget that cannot be computed says so",
    objects: [aBudget({}, conditionOfType("DisruptionAllowed", "False", "SyncFailed")), aPod("p", true, {})],
    chain: ["poddisruptionbudget/web"],
    reason: "SyncFailed",
  },
  {
    name: "a budget that needs all its pods allows none",
    objects: [aBudget({ maxUnavailable: 0 }, healthy), aPod("p", true, {})],
    chain: ["poddisruptionbudget/web"],
    reason: "NoDisruptionsAllowed",
    says: /maxUnavailable 0 needs all 2 pods, and 2 are healthy/,
  },
  {
    name: "a budget with too few healthy pods leads to one that is not",
    objects: [
      aBudget({ minAvailable: 2 }, { ...healthy, currentHealthy: 1 }),
      aPod("p", true, {}),
      aPod("r", false, {}),
      goodNode,
    ],
    chain: ["poddisruptionbudget/web", "pod/r"],
  },
  {
    name: "a budget that allows one is healthy",
    objects: [aBudget({ minAvailable: 1 }, { ...healthy, disruptionsAllowed: 1 }), aPod("p", true, {})],
    chain: [],
  },
  {
    name: "a quota is used up exactly at its limit, by its second resource too",
    objects: [aQuota({ cpu: "2", pods: "3" }, { cpu: "1", pods: "3" })],
    chain: ["resourcequota/q"],
    says: /^is used up: pods \(3 of 3\)$/,
  },
  {
    name: "a quota below its limit, of 0, or not used yet is healthy",
    objects: [aQuota({ cpu: "2", pods: "0", memory: "1" }, { cpu: "1999m", pods: "0" })],
    chain: [],
  },
]);
