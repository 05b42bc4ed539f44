/** The Pod used by most rows, about 3 kB as JSON: two containers of a web application, no secrets, no node. */
export function benchPod(name: string, index: number): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      labels: { app: "web", tier: `tier-${index % 5}`, sample: `${index % 100}`, "pod-template-hash": "5d8f7c9b6d" },
      annotations: {
        "example.com/description":
          "a pod of the benchmark, with text enough to be as long as the pods of a usual cluster ".repeat(2),
        "example.com/checksum": "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c",
      },
    },
    spec: {
      serviceAccountName: "default",
      automountServiceAccountToken: false,
      schedulerName: "nobody", // no scheduler has this name, so the Pod stays pending
      containers: [container("web", 8080), container("metrics", 9090)],
      volumes: [{ name: "scratch", emptyDir: {} }],
      terminationGracePeriodSeconds: 0,
    },
  };
}

/** A Pod with twenty containers, about 30 kB as JSON. */
export function largePod(name: string): object {
  const pod = benchPod(name, 0) as { spec: { containers: object[] } }; // cast: its spec has containers
  pod.spec.containers = Array.from({ length: 28 }, (_, index) => container(`part-${index}`, 8000 + index));
  return pod;
}

function container(name: string, port: number): object {
  return {
    name,
    image: `registry.example.com/team/${name}:v1.2.3`,
    args: ["--listen", `:${port}`, "--log-level=info", "--workers=4"],
    ports: [{ name: "http", containerPort: port }],
    env: Array.from({ length: 8 }, (_, index) => ({ name: `SETTING_${index}`, value: `value-of-setting-${index}` })),
    resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: { cpu: "500m", memory: "128Mi" } },
    readinessProbe: { httpGet: { path: "/ready", port: "http" }, periodSeconds: 10 },
    livenessProbe: { httpGet: { path: "/live", port: "http" }, periodSeconds: 20 },
    volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
  };
}

/** A small ConfigMap, about 300 bytes, as used for leader election and configuration. */
export function benchConfigMap(name: string, index: number): object {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, labels: { app: "web" }, annotations: { "example.com/checksum": "b5bb9d8014a0f9b1d61e21e796d78dcc" } },
    data: { "settings.ini": "level=info\nworkers=4\n".repeat(4), index: String(index) },
  };
}
