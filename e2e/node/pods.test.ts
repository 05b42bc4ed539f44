import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { getJson, kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, createPod, isReady, type PodView, runToEnd, waitForPod } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

test("environment variables come from values, fields, resources, ConfigMaps and Secrets", async (t) => {
  const namespace = await newNamespace(t, "env");
  await kubectl("create", "configmap", "settings", "-n", namespace, "--from-literal=color=red", "--from-literal=size=big");
  await kubectl("create", "secret", "generic", "access", "-n", namespace, "--from-literal=token=s3cret");
  const printed = await runToEnd(namespace, "env", {
    containers: [
      busybox("main", 'echo "$NAME|$NODE|$COLOR|$TOKEN|$CPU|$GREETING|$P_size|$IP"', {
        resources: { limits: { cpu: "250m", memory: "64Mi" } },
        envFrom: [{ prefix: "P_", configMapRef: { name: "settings" } }],
        env: [
          { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
          { name: "COLOR", valueFrom: { configMapKeyRef: { name: "settings", key: "color" } } },
          { name: "TOKEN", valueFrom: { secretKeyRef: { name: "access", key: "token" } } },
          { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } } },
          { name: "GREETING", value: "hello $(COLOR) $$(COLOR)" },
          { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
        ],
      }),
    ],
  });
  assert.match(
    printed,
    new RegExp(`^env\\|${settings.nodeName}\\|red\\|s3cret\\|250\\|hello red \\$\\(COLOR\\)\\|big\\|10\\.\\d+\\.\\d+\\.\\d+\n$`),
  );
});

test("volumes: emptyDir is shared, ConfigMap, Secret, downward API, token and host path are read", async (t) => {
  const namespace = await newNamespace(t, "volumes");
  const hostFile = join(settings.state, "host-file");
  writeFileSync(hostFile, "from the host\n");
  t.after(() => rmSync(hostFile, { force: true }));
  await kubectl("create", "configmap", "settings", "-n", namespace, "--from-literal=color=red");
  await kubectl("create", "secret", "generic", "access", "-n", namespace, "--from-literal=token=s3cret");
  const mount = (name: string): object => ({ name, mountPath: `/mnt/${name}` });
  const printed = await runToEnd(namespace, "volumes", {
    initContainers: [busybox("prepare", "echo from init > /mnt/scratch/file", { volumeMounts: [mount("scratch")] })],
    containers: [
      busybox(
        "main",
        "cat /mnt/scratch/file; cat /mnt/settings/color; echo; cat /mnt/access/token; echo; cat /mnt/labels/labels; echo; cat /mnt/host; head -c 3 /var/run/secrets/kubernetes.io/serviceaccount/token; echo; ls /var/run/secrets/kubernetes.io/serviceaccount; stat -f -c %T /mnt/memory",
        {
          volumeMounts: [
            mount("scratch"),
            mount("settings"),
            mount("access"),
            mount("labels"),
            { name: "host", mountPath: "/mnt/host" },
            mount("memory"),
          ],
        },
      ),
    ],
    volumes: [
      { name: "scratch", emptyDir: {} },
      { name: "memory", emptyDir: { medium: "Memory" } },
      { name: "settings", configMap: { name: "settings" } },
      { name: "access", secret: { secretName: "access" } },
      { name: "labels", downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] } },
      { name: "host", hostPath: { path: hostFile, type: "File" } },
    ],
  });
  assert.equal(printed, 'from init\nred\ns3cret\nname="volumes"\nfrom the host\neyJ\nca.crt\nnamespace\ntoken\ntmpfs\n');
});

test("a failing container is restarted with back-off, and says so", async (t) => {
  const namespace = await newNamespace(t, "crash");
  await createPod(namespace, "crash", { containers: [busybox("main", "exit 3")] });
  const pod = await waitForPod(
    namespace,
    "crash",
    "backs off",
    ({ status }) => status.containerStatuses?.[0]?.state["waiting"]?.reason === "CrashLoopBackOff",
  );
  assert.ok((pod.status.containerStatuses?.[0]?.restartCount ?? 0) >= 1);
  assert.equal(pod.status.containerStatuses?.[0]?.lastState["terminated"]?.exitCode, 3);
  // It runs briefly between two back-offs.
  await waitFor("the state in the list", async () =>
    /0\/1 +CrashLoopBackOff/.test(await kubectl("get", "pod", "crash", "-n", namespace)),
  );
  await waitFor("a BackOff event", async () =>
    (await kubectl("get", "events", "-n", namespace)).includes("Back-off restarting failed container"),
  );
});

test("probes decide readiness and restarts", async (t) => {
  const namespace = await newNamespace(t, "probes");
  const quick = { periodSeconds: 1, failureThreshold: 1 };
  await createPod(namespace, "ready", {
    containers: [
      busybox("main", "sleep 3600", { readinessProbe: { exec: { command: ["test", "-f", "/tmp/ready"] }, ...quick } }),
    ],
  });
  await createPod(namespace, "live", {
    terminationGracePeriodSeconds: 1,
    containers: [
      busybox("main", "touch /tmp/alive; sleep 3; rm /tmp/alive; sleep 3600", {
        livenessProbe: { exec: { command: ["test", "-f", "/tmp/alive"] }, ...quick },
      }),
    ],
  });
  await waitForPod(namespace, "ready", "runs without being ready", (pod) => pod.status.phase === "Running" && !isReady(pod));
  await kubectl("exec", "ready", "-n", namespace, "--", "touch", "/tmp/ready");
  await waitForPod(namespace, "ready", "is ready", isReady);
  await waitForPod(namespace, "live", "was restarted", ({ status }) => (status.containerStatuses?.[0]?.restartCount ?? 0) >= 1);
  await waitFor("an event", async () =>
    /Unhealthy[\s\S]*Liveness probe failed/.test(await kubectl("get", "events", "-n", namespace)),
  );
});

test("hooks run, and a pod that is requested to stop gets its grace period", async (t) => {
  const namespace = await newNamespace(t, "hooks");
  const file = join(settings.state, "hook-file");
  rmSync(file, { force: true });
  t.after(() => rmSync(file, { force: true }));
  await createPod(namespace, "hooks", {
    terminationGracePeriodSeconds: 150,
    volumes: [{ name: "host", hostPath: { path: settings.state } }],
    containers: [
      busybox("main", "trap 'echo term >> /host/hook-file; exit 0' TERM; while :; do sleep 0.1; done", {
        volumeMounts: [{ name: "host", mountPath: "/host" }],
        lifecycle: {
          postStart: { exec: { command: ["sh", "-c", "echo start >> /host/hook-file"] } },
          preStop: { exec: { command: ["sh", "-c", "echo stop >> /host/hook-file"] } },
        },
      }),
    ],
  });
  await waitForPod(namespace, "hooks", "is ready", isReady);
  const begin = Date.now();
  await kubectl("delete", "pod", "hooks", "-n", namespace);
  assert.ok(Date.now() - begin < 120_000, "it did not need its whole grace period");
  assert.ok(existsSync(file));
  assert.equal(
    await runToEnd(namespace, "reader", {
      containers: [busybox("main", "cat /host/hook-file", { volumeMounts: [{ name: "host", mountPath: "/host" }] })],
      volumes: [{ name: "host", hostPath: { path: settings.state } }],
    }),
    "start\nstop\nterm\n",
  );
});

test("the security context reaches the process", async (t) => {
  const namespace = await newNamespace(t, "secure");
  const printed = await runToEnd(namespace, "secure", {
    securityContext: { runAsUser: 1000, runAsGroup: 3000, fsGroup: 2000 },
    volumes: [{ name: "scratch", emptyDir: {} }],
    containers: [
      busybox(
        "main",
        "id -u; id -g; id -G; touch /scratch/f && stat -c %g /scratch/f; touch /x 2>&1; grep NoNewPrivs /proc/self/status",
        {
          volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
          securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
        },
      ),
    ],
  });
  assert.match(printed, /^1000\n3000\n3000 2000\n2000\ntouch: \/x: Read-only file system\nNoNewPrivs:\t1\n$/);
  await createPod(namespace, "root", { containers: [busybox("main", "sleep 1", { securityContext: { runAsNonRoot: true } })] });
  await waitForPod(
    namespace,
    "root",
    "is refused",
    ({ status }) => status.containerStatuses?.[0]?.state["waiting"]?.reason === "CreateContainerConfigError",
  );
});

test("a pod that fits nowhere waits, and an event says why", async (t) => {
  const namespace = await newNamespace(t, "large");
  await createPod(namespace, "large", { containers: [busybox("main", "sleep 1", { resources: { requests: { cpu: "1000" } } })] });
  await waitFor("a FailedScheduling event", async () =>
    /FailedScheduling.*0\/1 nodes are available: 1 Insufficient cpu/.test(await kubectl("get", "events", "-n", namespace)),
  );
});

test("an image that is not there is named, and never pulled when the policy forbids it", async (t) => {
  const namespace = await newNamespace(t, "image");
  await createPod(namespace, "never", {
    containers: [{ name: "main", image: "registry.invalid/none:1", imagePullPolicy: "Never" }],
  });
  await waitForPod(
    namespace,
    "never",
    "says why",
    ({ status }) => status.containerStatuses?.[0]?.state["waiting"]?.reason === "ErrImageNeverPull",
  );
});

test("a static pod runs, has a mirror in the API, and ends with its file", async (t) => {
  const file = join(settings.state, "manifests", "static.json");
  const name = `static-${settings.nodeName}`;
  t.after(() => rmSync(file, { force: true }));
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "static", namespace: "default" },
      spec: { terminationGracePeriodSeconds: 1, containers: [busybox("main", "sleep 3600")] },
    }),
  );
  const mirror = await waitForPod("default", name, "is ready", isReady);
  assert.equal(
    (await getJson<PodView & { metadata: { annotations: Record<string, string> } }>("pod", name, "-n", "default")).metadata
      .annotations["kubernetes.io/config.source"],
    "file",
  );
  assert.ok(mirror.status.podIP);
  rmSync(file);
  await waitFor("the mirror is gone", async () =>
    (await tryKubectl(["get", "pod", name, "-n", "default"])).stderr.includes("NotFound"),
  );
});
