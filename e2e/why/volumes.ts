import { claim, manifest, pod, type Situation, volume, volumeOf } from "./situation.ts";

const storageClass = (name: string, more: object): ReturnType<typeof manifest> =>
  manifest("storage.k8s.io/v1", "StorageClass", name, { provisioner: "why.example.com/none", ...more });

/** Claims and volumes. */
export const volumeSituations: readonly Situation[] = [
  {
    name: "class-missing",
    objects: [claim("data", { storageClassName: "why-nothing" }), pod("web", {}, volumeOf("data"))],
    args: ["pod/web"],
    phrase: /^Cause: persistentvolumeclaim\/data: storage class why-nothing does not exist/,
    quick: true,
  },
  {
    name: "no-class",
    objects: [claim("data", { storageClassName: "", resources: { requests: { storage: "900Ti" } } })],
    args: ["pvc/data"],
    phrase: /has no storage class, and no persistent volume matches/,
  },
  {
    name: "first-consumer",
    objects: [
      storageClass("why-first-consumer", { volumeBindingMode: "WaitForFirstConsumer" }),
      claim("data", { storageClassName: "why-first-consumer" }),
    ],
    args: ["pvc/data"],
    phrase: /waits for the first pod that uses it: no pod does/,
    undo: [["delete", "storageclass", "why-first-consumer"]],
  },
  {
    name: "too-large",
    objects: [
      volume("why-too-large"),
      storageClass("why-too-large", { provisioner: "kubernetes.io/no-provisioner" }),
      claim("data", { storageClassName: "why-too-large" }),
    ],
    args: ["pvc/data"],
    phrase: /it requests 5Gi, the largest available has 1Gi/,
    undo: [
      ["delete", "pv", "why-too-large"],
      ["delete", "storageclass", "why-too-large"],
    ],
  },
  {
    name: "volume-missing",
    objects: [claim("data", { storageClassName: "", volumeName: "nothing-at-all" })],
    args: ["pvc/data"],
    phrase: /requests volume nothing-at-all, which does not exist/,
  },
  {
    name: "provisioner",
    objects: [
      storageClass("why-provisioner", {}),
      claim("data", { storageClassName: "why-provisioner" }),
      pod("web", {}, volumeOf("data")),
    ],
    args: ["pod/web"],
    phrase: /provisioner why\.example\.com\/none of its storage class has not created a volume yet/,
    undo: [["delete", "storageclass", "why-provisioner"]],
  },
];
