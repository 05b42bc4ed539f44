import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { testRefusals } from "../../../../testing/refusals.ts";
import { type PodValidationOptions, podValidationOptions } from "./options.ts";
import { validatePodSpec } from "./pod.ts";
import { validateEphemeralContainersUpdate, validatePodStatusUpdate } from "./update.ts";
import { validateHostProcess } from "./windows-options.ts";

/** Rules that are not reachable by plain requests, because strategies, gates or flags prevent such objects. */
const options: PodValidationOptions = podValidationOptions(() => true);
const container = { name: "c", image: "i", terminationMessagePolicy: "File", imagePullPolicy: "Always" };
const spec = { containers: [container], restartPolicy: "Always", dnsPolicy: "Default" };
const aPod = (more: object, metadata: object = {}): Pod => ({ metadata, spec: { ...spec, ...more } });
const debugging = (image: string, name = "d"): object => ({ ...container, name, image });

testRefusals<{ next: Pod; current: Pod }>(
  ({ next, current }) => atOnce(validateEphemeralContainersUpdate(next, current, options)),
  [
    {
      name: "containers for debugging in a pod of a file",
      input: { current: aPod({}, { annotations: { "kubernetes.io/config.mirror": "x" } }), next: aPod({}) },
      want: ["[]: Forbidden: static pods do not support ephemeral containers"],
    },
    {
      name: "one that is gone, one that is wrong",
      input: {
        current: aPod({ ephemeralContainers: [debugging("i")] }, { annotations: {} }),
        next: aPod({ ephemeralContainers: [debugging("", "e")] }, { annotations: { "kubernetes.io/config.mirror": "x" } }),
      },
      want: [
        'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
        "spec.ephemeralContainers[0][0].image: Required value",
        "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation",
        'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
        'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be removed\n',
      ],
    },
  ],
);

testRefusals<{ next: Pod; current: Pod }>(
  ({ next, current }) => atOnce(validatePodStatusUpdate(next, current, options)),
  [
    {
      name: "a status that gives the pod a node",
      input: { current: aPod({}), next: aPod({ nodeName: "b" }) },
      want: ["status.nodeName: Forbidden: may not be changed directly"],
    },
    {
      name: "a status that takes the node of the pod away",
      input: { current: aPod({ nodeName: "a" }), next: aPod({}) },
      want: ["status.nodeName: Forbidden: may not be changed directly"],
    },
    {
      name: "a status that moves the pod, and an annotation",
      input: {
        current: aPod({ nodeName: "a" }),
        next: aPod({ nodeName: "b" }, { annotations: { "kubernetes.io/config.mirror": "x" } }),
      },
      want: [
        "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation",
        "status.nodeName: Forbidden: may not be changed directly",
      ],
    },
  ],
);

testRefusals<{ allowPrivileged: boolean; securityContext: object }>(
  ({ allowPrivileged, securityContext }) => {
    const pod = aPod({ containers: [container, { ...container, name: "d", securityContext }] });
    return atOnce(validatePodSpec(pod.spec, "spec", { ...options, allowPrivileged }));
  },
  [
    { name: "a privileged container", input: { allowPrivileged: true, securityContext: { privileged: true } }, want: [] },
    {
      name: "a second, privileged container where none is allowed",
      input: { allowPrivileged: false, securityContext: { privileged: true } },
      want: ["spec.containers[1].securityContext.privileged: Forbidden: disallowed by cluster policy"],
    },
    {
      name: "a container that is not privileged where none is allowed",
      input: { allowPrivileged: false, securityContext: { privileged: false } },
      want: [],
    },
    {
      name: "a container that says nothing of it where none is allowed",
      input: { allowPrivileged: false, securityContext: {} },
      want: [],
    },
  ],
);

testRefusals<Partial<PodValidationOptions>>(
  (changed) => {
    const pod = aPod({ hostNetwork: true, securityContext: { windowsOptions: { hostProcess: true } }, os: { name: "linux" } });
    const all = { ...options, ...changed };
    return [
      ...validateHostProcess(pod.spec, "spec", all),
      ...atOnce(validatePodSpec(aPod({ os: { name: "linux" } }).spec, "spec", all)),
    ];
  },
  [
    { name: "a process of the host, and an operating system", input: {}, want: [] },
    {
      name: "a host process where privileged containers are not allowed, an operating system where its gate is off",
      input: { allowPrivileged: false, os: false },
      want: [
        "spec: Forbidden: hostProcess containers are disallowed by cluster policy",
        "spec.os: Forbidden: cannot be set when IdentifyPodOS feature is not enabled",
      ],
    },
  ],
);
