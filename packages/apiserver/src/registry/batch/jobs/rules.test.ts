import { testKindRules } from "../../../testing/kind-rules.ts";
import { wrongExpressions } from "../../../testing/selector-cases.ts";

testKindRules(
  "jobs.batch",
  { spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } } },
  [
    { name: "a job", change: {}, want: [] },
    {
      name: "numbers",
      change: {
        "spec.parallelism": -1,
        "spec.completions": -1,
        "spec.activeDeadlineSeconds": -1,
        "spec.backoffLimit": -1,
        "spec.ttlSecondsAfterFinished": -1,
      },
      want: [
        "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
        "spec.completions: Invalid value: -1: must be greater than or equal to 0",
        "spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
        "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
        "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "pods that run for ever",
      change: { "spec.template.spec.restartPolicy": "Always" },
      want: ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    },
    {
      name: "no restart policy",
      change: { "spec.template.spec.restartPolicy": undefined },
      want: ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    },
    {
      name: "an unknown mode of completion",
      change: { "spec.completionMode": "Sorted" },
      want: ['spec.completionMode: Unsupported value: "Sorted": supported values: "NonIndexed", "Indexed"'],
    },
    {
      name: "indexes without number",
      change: { "spec.completionMode": "Indexed", "spec.completions": undefined, "spec.parallelism": 2 },
      want: ["spec.completions: Required value: when completion mode is Indexed"],
    },
    {
      name: "too many indexes",
      change: { "spec.completionMode": "Indexed", "spec.completions": 100000000, "spec.parallelism": 100001 },
      want: ["spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed"],
    },
    {
      name: "a selector that does not select",
      change: { "spec.manualSelector": true, "spec.selector": { matchLabels: { a: "b" } } },
      want: ["spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`"],
    },
    {
      name: "other completions and selector",
      change: { "spec.completions": 3, "spec.selector": { matchLabels: { a: "b" } }, "spec.completionMode": "Indexed" },
      before: {
        "spec.completions": 2,
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { c: "d" } },
        "spec.template.metadata.labels": { a: "b", c: "d" },
      },
      want: [
        "spec.completions: Invalid value: 3: field is immutable",
        'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable',
        'spec.completionMode: Invalid value: "Indexed": field is immutable',
      ],
    },
    {
      name: "another template",
      change: { "spec.template.spec.containers[0].image": "j" },
      before: {
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { c: "d" } },
        "spec.template.metadata.labels": { c: "d" },
      },
      want: [
        'spec.template: Invalid value: core.PodTemplateSpec{ObjectMeta:v1.ObjectMeta{Name:"", GenerateName:"", Namespace:"", SelfLink:"", UID:"", ResourceVersion:"", Generation:0, CreationTimestamp:time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC), DeletionTimestamp:<nil>, DeletionGracePeriodSeconds:(*int64)(nil), Labels:map[string]string{"c":"d"}, Annotations:map[string]string(nil), OwnerReferences:[]v1.OwnerReference(nil), Finalizers:[]string(nil), ClusterName:"", ManagedFields:[]v1.ManagedFieldsEntry(nil)}, Spec:core.PodSpec{Volumes:[]core.Volume(nil), InitContainers:[]core.Container(nil), Containers:[]core.Container{core.Container{Name:"c", Image:"j", Command:[]string(nil), Args:[]string(nil), WorkingDir:"", Ports:[]core.ContainerPort(nil), EnvFrom:[]core.EnvFromSource(nil), Env:[]core.EnvVar(nil), Resources:core.ResourceRequirements{Limits:core.ResourceList(nil), Requests:core.ResourceList(nil)}, VolumeMounts:[]core.VolumeMount(nil), VolumeDevices:[]core.VolumeDevice(nil), LivenessProbe:(*core.Probe)(nil), ReadinessProbe:(*core.Probe)(nil), StartupProbe:(*core.Probe)(nil), Lifecycle:(*core.Lifecycle)(nil), TerminationMessagePath:"/dev/termination-log", TerminationMessagePolicy:"File", ImagePullPolicy:"Always", SecurityContext:(*core.SecurityContext)(nil), Stdin:false, StdinOnce:false, TTY:false}}, EphemeralContainers:[]core.EphemeralContainer(nil), RestartPolicy:"Never", TerminationGracePeriodSeconds:(*int64)(0xc000000000), ActiveDeadlineSeconds:(*int64)(nil), DNSPolicy:"ClusterFirst", NodeSelector:map[string]string(nil), ServiceAccountName:"", AutomountServiceAccountToken:(*bool)(nil), NodeName:"", SecurityContext:(*core.PodSecurityContext)(0xc000000000), ImagePullSecrets:[]core.LocalObjectReference(nil), Hostname:"", Subdomain:"", SetHostnameAsFQDN:(*bool)(nil), Affinity:(*core.Affinity)(nil), SchedulerName:"default-scheduler", Tolerations:[]core.Toleration(nil), HostAliases:[]core.HostAlias(nil), PriorityClassName:"", Priority:(*int32)(nil), PreemptionPolicy:(*core.PreemptionPolicy)(nil), DNSConfig:(*core.PodDNSConfig)(nil), ReadinessGates:[]core.PodReadinessGate(nil), RuntimeClassName:(*string)(nil), Overhead:core.ResourceList(nil), EnableServiceLinks:(*bool)(nil), TopologySpreadConstraints:[]core.TopologySpreadConstraint(nil), OS:(*core.PodOS)(nil)}}: field is immutable',
      ],
    },
    {
      name: "counts",
      change: { status: { active: -1, succeeded: -1, failed: -1 } },
      before: {
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { c: "d" } },
        "spec.template.metadata.labels": { c: "d" },
      },
      status: true,
      want: [
        "status.active: Invalid value: -1: must be greater than or equal to 0",
        "status.succeeded: Invalid value: -1: must be greater than or equal to 0",
        "status.failed: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "a name too long for its pods",
      change: {
        "metadata.name": "a".repeat(62),
        "spec.completionMode": "Indexed",
        "spec.completions": 100,
        "spec.parallelism": 1,
      },
      want: [
        'metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": will not able to create pod with invalid DNS label: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-99',
      ],
    },
    {
      name: "a manual selector that is missing",
      change: { "spec.manualSelector": true },
      want: [
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`",
      ],
    },
    {
      name: "a selector that is not its own any more",
      before: {
        "spec.selector": { matchLabels: { "controller-uid": "2" } },
        "spec.template.metadata.labels": { "controller-uid": "2" },
      },
      change: {},
      want: [
        'spec.template.metadata.labels[controller-uid]: Invalid value: map[string]string{"controller-uid":"2"}: must be \'1\'',
        "spec.template.metadata.labels[job-name]: Required value: must be 'valid'",
        'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"controller-uid":"2"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: `selector` not auto-generated',
      ],
    },
    {
      name: "pods that are counted twice, and of no uid",
      status: true,
      before: {
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { c: "d" } },
        "spec.template.metadata.labels": { c: "d" },
      },
      change: { "status.uncountedTerminatedPods": { succeeded: ["a", ""], failed: ["a"] } },
      want: [
        'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
        'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
      ],
    },
    {
      name: "a selector of one's own, of wrong expressions",
      change: {
        "spec.manualSelector": true,
        "spec.selector": wrongExpressions.selector,
      },
      want: wrongExpressions.want("spec.selector"),
    },
    {
      name: "pods with an unknown restart policy",
      change: { "spec.template.spec.restartPolicy": "Maybe" },
      want: [
        'spec.template.spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"',
        'spec.template.spec.restartPolicy: Unsupported value: "Maybe": supported values: "OnFailure", "Never"',
      ],
    },
    {
      name: "numbers of an update, which are reported twice",
      before: {
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { a: "b" } },
        "spec.template.metadata": { labels: { a: "b" } },
      },
      change: { "spec.backoffLimit": -1, "spec.ttlSecondsAfterFinished": -1 },
      want: ["backoffLimit", "ttlSecondsAfterFinished", "backoffLimit", "ttlSecondsAfterFinished"].map(
        (field) => `spec.${field}: Invalid value: -1: must be greater than or equal to 0`,
      ),
    },
    {
      name: "pods without a restart policy, as no defaults leave them",
      undefaulted: true,
      change: {
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { a: "b" } },
        "spec.template.metadata": { labels: { a: "b" } },
        "spec.template.spec.restartPolicy": "",
        "spec.template.spec.dnsPolicy": "Default",
        "spec.template.spec.containers[0].terminationMessagePolicy": "File",
        "spec.template.spec.containers[0].imagePullPolicy": "Always",
      },
      want: [
        "spec.template.spec.restartPolicy: Required value",
        'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
      ],
    },
    {
      name: "the annotation of those whose pods finalizers count, which it did not have",
      before: {
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { a: "b" } },
        "spec.template.metadata": { labels: { a: "b" } },
      },
      change: { "metadata.annotations": { "batch.kubernetes.io/job-tracking": "" } },
      want: ["metadata.annotations[batch.kubernetes.io/job-tracking]: Forbidden: cannot add this annotation"],
    },
  ],
);
