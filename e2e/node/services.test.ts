import assert from "node:assert/strict";
import { test } from "node:test";
import { kubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, createPod, isReady, runToEnd, waitForPod } from "../framework/pods.ts";

test("a pod reaches another through a Service's cluster IP, and the API server through the kubernetes Service", async (t) => {
  const namespace = await newNamespace(t, "service");
  await createPod(namespace, "server", {
    containers: [busybox("main", "mkdir /www; echo served > /www/index.html; httpd -f -p 8080 -h /www")],
  });
  await waitForPod(namespace, "server", "is ready", isReady);
  await kubectl("expose", "pod", "server", "-n", namespace, "--name=front", "--port=80", "--target-port=8080");
  const address = await kubectl("get", "service", "front", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}");
  const retry = (command: string): string => `for i in $(seq 60); do ${command} && exit 0; sleep 0.5; done; exit 1`;
  const fetched = await runToEnd(namespace, "client", {
    containers: [busybox("main", retry(`timeout 3 wget -q -O - http://${address}/`))],
  });
  assert.equal(fetched, "served\n");
  const connected = await runToEnd(namespace, "api-client", {
    containers: [
      busybox("main", retry('timeout 3 nc "$KUBERNETES_SERVICE_HOST" "$KUBERNETES_SERVICE_PORT" </dev/null && echo connected')),
    ],
  });
  assert.equal(connected, "connected\n");
});

test("a Service that nobody answers for refuses at once", async (t) => {
  const namespace = await newNamespace(t, "refuse");
  await kubectl("create", "service", "clusterip", "empty", "-n", namespace, "--tcp=80:80");
  const address = await kubectl("get", "service", "empty", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}");
  const answer = await runToEnd(namespace, "client", {
    containers: [
      busybox(
        "main",
        `for i in $(seq 60); do timeout 3 wget -q -O - http://${address}/ 2>&1 | grep refused && exit 0; sleep 0.5; done; exit 1`,
      ),
    ],
  });
  assert.match(answer, /refused/);
});
