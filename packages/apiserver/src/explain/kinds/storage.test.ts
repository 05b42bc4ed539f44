import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { condition, conditionOfType, earlier, eventAbout, later, stored, testExplanations } from "../testing.ts";

const recent = "2026-03-01T11:59:55Z";

const aClaim = (spec: object = {}, status: object = { phase: "Pending" }, metadata: object = {}): Unstructured =>
  stored("v1", "PersistentVolumeClaim", "data", {
    metadata,
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "5Gi" } }, ...spec },
    status,
  });
const aVolume = (name: string, spec: object = {}, status: object = { phase: "Available" }, metadata: object = {}): Unstructured =>
  stored("v1", "PersistentVolume", name, {
    metadata,
    spec: { capacity: { storage: "9Gi" }, accessModes: ["ReadWriteOnce"], persistentVolumeReclaimPolicy: "Retain", ...spec },
    status,
  });
const aClass = (more: object = {}): Unstructured =>
  stored("storage.k8s.io/v1", "StorageClass", "fast", { provisioner: "p", ...more });
const user = (name: string, nodeName = "", status: object = {}): Unstructured =>
  stored("v1", "Pod", name, {
    spec: {
      ...(nodeName && { nodeName }),
      containers: [],
      volumes: [{ name: "o" }, { name: "v", persistentVolumeClaim: { claimName: "data" } }],
    },
    status,
  });
const claim = ["persistentvolumeclaim/data"];
const ofClass = { storageClassName: "fast" };
const noClass = { storageClassName: "" };

testExplanations([
  { name: "a bound claim is healthy", objects: [aClaim({}, { phase: "Bound" })], chain: [] },
  {
    name: "a claim that has lost its volume",
    objects: [aClaim({ volumeName: "v" }, { phase: "Lost" })],
    chain: claim,
    reason: "VolumeLost",
    says: /its volume v/,
  },
  {
    name: "a claim of a volume that does not exist",
    objects: [aClaim({ volumeName: "v" })],
    chain: claim,
    reason: "VolumeMissing",
  },
  {
    name: "a claim of a volume that another namespace's claim has",
    objects: [aClaim({ volumeName: "v" }), aVolume("v", { claimRef: { namespace: "other", name: "data" } })],
    chain: claim,
    reason: "VolumeTaken",
  },
  {
    name: "a claim of a volume that does not match it",
    objects: [
      aClaim({ volumeName: "v", ...noClass }),
      aVolume("v", { capacity: { storage: "1Gi" }, claimRef: { namespace: "default", name: "data" } }),
    ],
    chain: claim,
    reason: "VolumeMismatch",
  },
  {
    name: "a claim of a class that does not exist, and of no volume",
    objects: [aClaim(ofClass)],
    chain: claim,
    reason: "StorageClassMissing",
    says: /^storage class fast does not exist, and no persistent volume matches: there is none$/,
  },
  ...(
    [
      ["of its class", [aVolume("v", ofClass)], /none of 1 volume is of its class$/],
      [
        "that is available",
        [aVolume("v", noClass, { phase: "Released" }), aVolume("w", { ...noClass, claimRef: {} })],
        /none of 2 is available \(1 released/,
      ],
      [
        "as large",
        [aVolume("v", { ...noClass, capacity: { storage: "1Gi" } }), aVolume("w", { ...noClass, capacity: { storage: "4Gi" } })],
        /requests 5Gi, the largest available has 4Gi$/,
      ],
      [
        "with its access mode",
        [aVolume("v", { ...noClass, accessModes: ["ReadOnlyMany"] })],
        /none has access mode ReadWriteOnce$/,
      ],
      ["with its labels", [aVolume("v", noClass)], /1 volume of the size and class has other labels/],
      [
        "with its labels, of two",
        [aVolume("v", noClass), aVolume("w", noClass)],
        /2 volumes of the size and class have other labels or another volume mode$/,
      ],
    ] as [string, Unstructured[], RegExp][]
  ).map(([what, volumes, says]) => ({
    name: `a claim without a class, and no volume ${what}`,
    objects: [aClaim(noClass), ...volumes],
    chain: claim,
    reason: "NoVolumeMatches",
    says,
  })),
  {
    name: "a claim of two access modes, and a volume with one of them",
    objects: [aClaim({ ...noClass, accessModes: ["ReadWriteOnce", "ReadOnlyMany"] }), aVolume("v", noClass)],
    chain: claim,
    reason: "NoVolumeMatches",
    says: /none has access mode ReadWriteOnce, ReadOnlyMany$/,
  },
  {
    name: "a claim of a class without a provisioner waits for a volume",
    objects: [aClaim(ofClass), aClass({ provisioner: "kubernetes.io/no-provisioner" })],
    chain: claim,
    reason: "NoVolumeMatches",
    says: /^storage class fast provisions none/,
  },
  {
    name: "a claim whose volumes may not be listed is just not bound",
    objects: [aClaim(noClass)],
    hidden: ["persistentvolumes"],
    chain: claim,
    reason: "NotBound",
  },
  {
    name: "a claim whose volume cannot be provisioned",
    objects: [aClaim(ofClass), aClass()],
    events: [eventAbout("PersistentVolumeClaim", "data", "ProvisioningFailed", "no space", later)],
    chain: claim,
    reason: "ProvisioningFailed",
    says: /no space/,
    since: later,
  },
  {
    name: "a claim whose class was not found is not said to fail in its provisioner",
    objects: [aClaim(ofClass), aClass()],
    events: [
      eventAbout("PersistentVolumeClaim", "data", "ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found', later),
    ],
    chain: claim,
    reason: "NotBound",
  },
  {
    name: "a failure to provision is told by the component that has it",
    objects: [aClaim(ofClass), aClass()],
    events: [
      { ...eventAbout("PersistentVolumeClaim", "data", "ProvisioningFailed", "no space"), source: { component: "csi.example" } },
    ],
    chain: claim,
    reason: "ProvisioningFailed",
  },
  {
    name: "a claim for which a provisioner was named by the newer annotation waits for it",
    objects: [
      aClaim(
        ofClass,
        { phase: "Pending" },
        {
          annotations: {
            "volume.kubernetes.io/storage-provisioner": "new",
            "volume.beta.kubernetes.io/storage-provisioner": "old",
          },
        },
      ),
      aClass(),
    ],
    chain: claim,
    reason: "ProvisionerSilent",
    says: /^provisioner new of/,
  },
  {
    name: "a claim whose class may not be read is just not bound",
    objects: [aClaim(ofClass), aClass()],
    hidden: ["storageclasses"],
    chain: claim,
    reason: "NotBound",
    says: /is not bound to a volume yet$/,
  },
  {
    name: "a claim of a volume that is its own, and whose class is away, is matched",
    objects: [aClaim({ volumeName: "v", ...noClass }), aVolume("v", { claimRef: { namespace: "default", name: "data" } })],
    chain: claim,
    reason: "NoVolumeMatches",
  },
  {
    name: "a claim of a volume of another claim in its namespace",
    objects: [aClaim({ volumeName: "v" }), aVolume("v", { claimRef: { namespace: "default", name: "other" } })],
    chain: claim,
    reason: "VolumeTaken",
  },
  {
    name: "a claim that is being resized, since its creation when nothing says since when",
    objects: [aClaim({}, { phase: "Bound", conditions: [{ type: "Resizing", status: "True" }] })],
    chain: claim,
    since: earlier,
  },
  {
    name: "a claim that waits for a first pod has none",
    objects: [aClaim(ofClass), aClass({ volumeBindingMode: "WaitForFirstConsumer" }), user("p", "n1")],
    chain: claim,
    reason: "WaitsForFirstConsumer",
    says: /no pod does$/,
  },
  {
    name: "a claim that waits for its pod leads to it",
    objects: [aClaim(ofClass), aClass({ volumeBindingMode: "WaitForFirstConsumer" }), user("p")],
    chain: [...claim, "pod/p"],
  },
  {
    name: "a claim for which a node is selected waits for its provisioner",
    objects: [
      aClaim(
        ofClass,
        { phase: "Pending" },
        { annotations: { "volume.kubernetes.io/selected-node": "n", "volume.beta.kubernetes.io/storage-provisioner": "p" } },
      ),
      aClass({ volumeBindingMode: "WaitForFirstConsumer" }),
    ],
    chain: claim,
    reason: "ProvisionerSilent",
    says: /provisioner p /,
  },
  {
    name: "a claim without a provisioner's name is not bound yet",
    objects: [aClaim(ofClass), aClass()],
    chain: claim,
    reason: "NotBound",
    says: /\(storage class fast\)$/,
  },
  {
    name: "a claim whose file system is still to grow",
    objects: [aClaim({}, { phase: "Bound", ...conditionOfType("FileSystemResizePending", "True", "") })],
    chain: claim,
    reason: "FileSystemResizePending",
    says: /has grown/,
  },
  {
    name: "a claim that is being resized",
    objects: [aClaim({}, { phase: "Bound", ...conditionOfType("Resizing", "True", "") })],
    chain: claim,
    reason: "Resizing",
    says: /being resized: why/,
  },
  {
    name: "a claim whose resize is over is healthy",
    objects: [aClaim({}, { phase: "Bound", ...conditionOfType("Resizing", "False", "") })],
    chain: [],
  },
  {
    name: "a claim that is being deleted is in use, not by a pod that is done",
    objects: [
      aClaim({}, { phase: "Bound" }, { deletionTimestamp: later, finalizers: ["kubernetes.io/pvc-protection"] }),
      user("p", "n", { phase: "Succeeded" }),
      user("q", "n"),
      user("r", "n"),
    ],
    chain: claim,
    reason: "ClaimInUse",
    says: /: q, r do$/,
  },
  {
    name: "a claim that is being deleted and used by none is kept by its finalizer",
    objects: [
      aClaim({}, { phase: "Bound" }, { deletionTimestamp: later, finalizers: ["kubernetes.io/pvc-protection"] }),
      user("p", "n", { phase: "Failed" }),
    ],
    chain: claim,
    reason: "FinalizerPending",
  },
  {
    name: "a volume whose policy failed",
    objects: [aVolume("v", {}, { phase: "Failed", message: "busy" })],
    chain: ["persistentvolume/v"],
    reason: "VolumeFailed",
    says: /busy$/,
  },
  {
    name: "a released volume is kept by its policy",
    objects: [aVolume("v", { claimRef: { namespace: "a", name: "b" } }, { phase: "Released" })],
    chain: ["persistentvolume/v"],
    says: /its claim a\/b was deleted/,
  },
  {
    name: "a released volume that is to be deleted waits for its provisioner",
    objects: [aVolume("v", { persistentVolumeReclaimPolicy: "Delete" }, { phase: "Released" })],
    chain: ["persistentvolume/v"],
    says: /policy Delete is still to be carried out/,
  },
  {
    name: "a new volume that is to be deleted is healthy",
    objects: [aVolume("v", { persistentVolumeReclaimPolicy: "Delete" }, { phase: "Released" }, { creationTimestamp: recent })],
    chain: [],
  },
  {
    name: "a bound volume that is being deleted is in use",
    objects: [
      aVolume(
        "v",
        { claimRef: { namespace: "a", name: "b" } },
        { phase: "Bound" },
        { deletionTimestamp: later, finalizers: ["kubernetes.io/pv-protection"] },
      ),
    ],
    chain: ["persistentvolume/v"],
    reason: "VolumeInUse",
    says: /when claim a\/b/,
  },
]);

const attachment = (status: object, metadata: object = {}): Unstructured =>
  stored("storage.k8s.io/v1", "VolumeAttachment", "a", {
    metadata,
    spec: { attacher: "d", nodeName: "n", source: { persistentVolumeName: "v" } },
    status,
  });
const wrong = (message: string): object => ({ message, time: later });

testExplanations([
  {
    name: "an attachment that fails",
    objects: [attachment({ attached: false, attachError: wrong("no"), detachError: wrong("other") })],
    chain: ["volumeattachment/a"],
    reason: "AttachFailed",
    says: /^volume v cannot be attached to node n: no$/,
    since: later,
  },
  {
    name: "an attachment that succeeded after an error is healthy",
    objects: [attachment({ attached: true, attachError: wrong("no") })],
    chain: [],
  },
  {
    name: "an attachment that is being deleted and still attached tells why it cannot be detached",
    objects: [
      attachment(
        { attached: true, attachError: wrong("other"), detachError: wrong("busy") },
        { deletionTimestamp: earlier, finalizers: ["external-attacher/d"] },
      ),
    ],
    chain: ["volumeattachment/a"],
    reason: "DetachFailed",
    says: /^volume v cannot be detached from node n: busy$/,
    since: later,
  },
  {
    name: "an attachment that is being deleted does not tell why it could not be attached",
    objects: [attachment({ attached: false, attachError: wrong("other") }, { deletionTimestamp: later })],
    chain: ["volumeattachment/a"],
    reason: "BeingDeleted",
  },
]);

const aNode = (spec: object, ...conditions: object[]): Unstructured =>
  stored("v1", "Node", "n", { spec, status: { conditions } });
const nodeReady = condition("Ready", "True");
const n = ["node/n"];

testExplanations([
  {
    name: "a node whose kubelet never came",
    objects: [aNode({}, condition("Ready", "Unknown", { reason: "NodeStatusNeverUpdated" }))],
    chain: n,
    reason: "KubeletNeverCame",
  },
  { name: "a node without conditions", objects: [aNode({})], chain: n, reason: "KubeletNeverCame", since: earlier },
  {
    name: "a node whose kubelet went silent",
    objects: [aNode({}, condition("Ready", "Unknown", { lastHeartbeatTime: earlier }))],
    chain: n,
    reason: "R",
    says: /stopped reporting at 2026-03-01T11:50:00Z/,
    since: later,
  },
  {
    name: "a node without a network plugin is told to install one",
    objects: [aNode({}, condition("Ready", "False", { message: "CNI config uninitialized" }))],
    chain: n,
    remedy: /network plugin/,
  },
  {
    name: "a node that is not ready for another reason is told to look at its container runtime",
    objects: [aNode({}, condition("Ready", "False"))],
    chain: n,
    remedy: /container runtime/,
  },
  {
    name: "a node short of memory",
    objects: [aNode({}, nodeReady, condition("DiskPressure", "False"), condition("MemoryPressure", "True"))],
    chain: n,
    reason: "MemoryPressure",
    says: /short of memory \(MemoryPressure\): m/,
    remedy: /requests and limits/,
  },
  {
    name: "a node short of process numbers says so",
    objects: [aNode({}, nodeReady, condition("PIDPressure", "True"))],
    chain: n,
    says: /short of process numbers/,
  },
  {
    name: "a node short of memory that does not say more",
    objects: [aNode({}, nodeReady, { type: "MemoryPressure", status: "True" })],
    chain: n,
    says: /^is short of memory \(MemoryPressure\): it takes no more pods/,
  },
  {
    name: "a node whose kubelet went silent, nobody knows when",
    objects: [aNode({}, { type: "Ready", status: "Unknown" })],
    chain: n,
    reason: "NodeStatusUnknown",
    says: /stopped reporting at an unknown time$/,
  },
  {
    name: "a node that is not ready and gives no reason",
    objects: [aNode({}, { type: "Ready", status: "False" })],
    chain: n,
    reason: "KubeletNotReady",
  },
  {
    name: "a taint without a value that evicts none",
    objects: [aNode({ taints: [{ key: "b", effect: "NoSchedule", timeAdded: later }] }, nodeReady)],
    chain: n,
    reason: "NodeTainted",
    says: /^taint b:NoSchedule repels pods that do not tolerate it$/,
    since: later,
  },
  {
    name: "a node without its network says so",
    objects: [aNode({}, nodeReady, condition("NetworkUnavailable", "True"))],
    chain: n,
    says: /NetworkUnavailable\): m/,
  },
  {
    name: "a cordoned node tells since when",
    objects: [
      aNode(
        {
          unschedulable: true,
          taints: [
            { key: "a", effect: "NoSchedule" },
            { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule", timeAdded: later },
          ],
        },
        nodeReady,
      ),
    ],
    chain: n,
    reason: "NodeCordoned",
    since: later,
  },
  {
    name: "the second taint of a node, which evicts",
    objects: [
      aNode(
        {
          taints: [
            { key: "a", effect: "PreferNoSchedule" },
            { key: "b", value: "c", effect: "NoExecute" },
          ],
        },
        nodeReady,
      ),
    ],
    chain: n,
    reason: "NodeTainted",
    says: /^taint b=c:NoExecute repels .*, and evicts/,
    remedy: /taint node n b-$/,
  },
]);
