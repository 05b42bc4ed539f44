import { testKindRules } from "../../../../testing/kind-rules.ts";

testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  {
    name: "a new pod with containers for debugging",
    change: { "spec.ephemeralContainers": [{ name: "d", image: "i" }] },
    want: ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
  },
  {
    name: "ephemeral containers without a name, with an unknown target, a container's name and spaces",
    before: {},
    change: {
      "spec.ephemeralContainers": [
        { name: "", image: "i", targetContainerName: "y" },
        { name: "d", image: "i", targetContainerName: "x" },
        { name: "c", image: " i" },
      ],
    },
    want: [
      'spec.ephemeralContainers[0].targetContainerName: Not found: "y"',
      "spec.ephemeralContainers[0]: Required value: ephemeralContainer requires a name",
      'spec.ephemeralContainers[1].targetContainerName: Not found: "x"',
      'spec.ephemeralContainers[2][0].image: Invalid value: " i": must not have leading or trailing whitespace',
      'spec.ephemeralContainers[2].name: Duplicate value: "c"',
      "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    ],
  },
  {
    name: "a container for debugging with all that others may have",
    before: {},
    change: {
      "spec.volumes": [{ name: "v", emptyDir: {} }],
      "spec.ephemeralContainers": [
        {
          name: "d",
          image: "i",
          ports: [{ containerPort: 1 }],
          resources: { limits: { cpu: "1" } },
          livenessProbe: { exec: { command: ["x"] } },
          readinessProbe: { exec: { command: ["x"] } },
          startupProbe: { exec: { command: ["x"] } },
          lifecycle: { preStop: { exec: { command: ["x"] } } },
          volumeMounts: [
            { name: "v", mountPath: "/v", subPath: "a" },
            { name: "v", mountPath: "/w", subPathExpr: "a" },
            { name: "v", mountPath: "/x", subPath: "a", subPathExpr: "b" },
          ],
        },
      ],
    },
    want: [
      'spec.ephemeralContainers[0][0].volumeMounts[2].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive',
      "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
      "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
      "spec.ephemeralContainers[0].livenessProbe: Forbidden: cannot be set for an Ephemeral Container",
      "spec.ephemeralContainers[0].readinessProbe: Forbidden: cannot be set for an Ephemeral Container",
      "spec.ephemeralContainers[0].startupProbe: Forbidden: cannot be set for an Ephemeral Container",
      "spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container",
      "spec.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container",
      "spec.ephemeralContainers[0].volumeMounts[1].subPathExpr: Forbidden: cannot be set for an Ephemeral Container",
      "spec.ephemeralContainers[0].volumeMounts[2].subPath: Forbidden: cannot be set for an Ephemeral Container",
      "spec.ephemeralContainers[0].volumeMounts[2].subPathExpr: Forbidden: cannot be set for an Ephemeral Container",
      "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    ],
  },
]);
