import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newCertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { getJson, kubectl, outcomeOf, printed, startKubectl, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { busybox, createPod, isReady, waitForPod } from "../framework/pods.ts";
import { waitFor } from "../framework/wait-for.ts";

function scratch(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "kubectl-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("every `create` makes its object, and `get` shows each kind in its own columns", async (t) => {
  const namespace = await newNamespace(t, "create");
  const create = (...args: string[]): Promise<string> => kubectl("create", "-n", namespace, ...args);
  const cluster = [
    ["clusterrole", namespace, "--verb=get", "--resource=pods"],
    ["clusterrolebinding", namespace, `--clusterrole=${namespace}`, "--user=jane"],
    ["priorityclass", namespace, "--value=1000", "--description=test"],
  ];
  for (const [kind = "", ...args] of cluster) {
    t.after(() => kubectl("delete", kind, namespace));
    await create(kind, ...args);
  }
  const objects: [string[], RegExp][] = [
    [["configmap", "c", "--from-literal=a=1"], /^c +1 +[\dms]+$/m],
    [["cronjob", "c", "--image=busybox:1.35", "--schedule=0 0 1 1 *"], /^c +0 0 1 1 \* +False +0 +<none> +[\dms]+$/m],
    [["deployment", "d", "--image=busybox:1.35", "--replicas=0"], /^d +0\/0 +0 +0 +[\dms]+$/m],
    [["ingress", "i", "--class=front", "--rule=example.com/*=s:80,tls=cert"], /^i +front +example\.com +80, 443 +[\dms]+$/m],
    [["job", "j", "--image=busybox:1.35"], /^j +[01]\/1 +[\dms]* +[\dms]+$/m],
    [["poddisruptionbudget", "p", "--selector=app=web", "--min-available=1"], /^p +1 +N\/A +0 +[\dms]+$/m],
    [["quota", "q", "--hard=services=9"], /^q +[\dms]+ +services: \d\/9/m],
    [["role", "r", "--verb=get", "--resource=pods"], /^r +\d{4}-\d\d-\d\dT/m],
    [["rolebinding", "r", "--role=r", "--serviceaccount=default:default"], /^r +Role\/r +[\dms]+$/m],
    [["secret", "generic", "s", "--from-literal=a=1"], /^s +Opaque +1 +[\dms]+$/m],
    [["service", "clusterip", "s", "--tcp=80:8080"], /^s +ClusterIP +\d+\.\d+\.\d+\.\d+ +<none> +80\/TCP +[\dms]+$/m],
    [["serviceaccount", "a"], /^a +\d +[\dms]+$/m],
  ];
  for (const [args, line] of objects) {
    await create(...args);
    const kind = args[0] as string;
    // Some columns show status written by a controller.
    await waitFor(`${kind} in its columns`, async () => line.test(await kubectl("get", kind, "-n", namespace)));
    assert.match(await kubectl("describe", kind, "-n", namespace), /^Name: +\w/m, kind);
  }
  assert.match(await create("service", "nodeport", "n", "--tcp=80"), /service\/n created/);
  assert.match(await create("service", "externalname", "e", "--external-name=example.com"), /service\/e created/);
  assert.match(await create("service", "loadbalancer", "l", "--tcp=80"), /service\/l created/);
  assert.match(await kubectl("get", "service", "l", "-n", namespace), /LoadBalancer +\S+ +(<pending>|[\d.]+) +80:\d+\/TCP/);
  assert.match(await create("secret", "docker-registry", "d", "--docker-username=u", "--docker-password=p"), /created/);
  const again = await tryKubectl(["create", "-n", namespace, "configmap", "c"]);
  assert.equal(again.stderr, 'error: failed to create configmap: configmaps "c" already exists\n');
  assert.match(await create("deployment", "dry", "--image=x", "--dry-run=server", "-o", "yaml"), /uid: /);
  assert.match(await kubectl("create", "job", "from", "--from=cronjob/c", "-n", namespace), /job.batch\/from created/);
});

test("set, taint, edit, autoscale, certificate and kustomize change what they name", async (t) => {
  const namespace = await newNamespace(t, "change");
  const run = (...args: string[]): Promise<string> => kubectl("-n", namespace, ...args);
  const folder = scratch(t);
  await run("create", "deployment", "web", "--image=busybox:1.35", "--replicas=0");
  const get = (path: string) => run("get", "deployment", "web", "-o", `jsonpath=${path}`);
  await run("set", "env", "deployment/web", "COLOR=red");
  assert.equal(await run("set", "env", "deployment/web", "--list"), "# Deployment web, container busybox\nCOLOR=red\n");
  await run("set", "resources", "deployment/web", "--limits=cpu=200m,memory=64Mi");
  assert.equal(await get("{.spec.template.spec.containers[0].resources.limits.cpu}"), "200m");
  await run("create", "serviceaccount", "other");
  await run("set", "serviceaccount", "deployment/web", "other");
  assert.equal(await get("{.spec.template.spec.serviceAccountName}"), "other");
  await run("rollout", "pause", "deployment/web");
  assert.equal(await get("{.spec.paused}"), "true");
  await run("rollout", "resume", "deployment/web");
  await run("rollout", "restart", "deployment/web");
  assert.match(await get("{.spec.template.metadata.annotations}"), /restartedAt/);
  await run("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu-percent=50");
  assert.match(await run("get", "hpa"), /web +Deployment\/web +<unknown>\/50% +1 +3 +0 +[\dms]+/);
  await run("create", "rolebinding", "r", "--role=none", "--user=jane");
  await run("set", "subject", "rolebinding", "r", "--group=devs");
  assert.match(await run("describe", "rolebinding", "r"), /User +jane[\s\S]*Group +devs/);
  await run("create", "service", "clusterip", "s", "--tcp=80");
  await run("set", "selector", "service", "s", "app=web");
  assert.equal(await run("get", "service", "s", "-o", "jsonpath={.spec.selector}"), '{"app":"web"}');

  const editor = join(folder, "editor");
  writeFileSync(editor, "#!/bin/sh\nsed -i 's/COLOR/SHADE/' \"$1\"\n", { mode: 0o755 });
  process.env["KUBE_EDITOR"] = editor;
  t.after(() => delete process.env["KUBE_EDITOR"]);
  assert.equal(await run("edit", "deployment", "web"), "deployment.apps/web edited\n");
  assert.equal(await get("{.spec.template.spec.containers[0].env[0].name}"), "SHADE");

  const node = (await kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")).trim();
  await kubectl("taint", "nodes", node, "e2e=yes:PreferNoSchedule");
  assert.match(await kubectl("describe", "node", node), /Taints: +e2e=yes:PreferNoSchedule/);
  await kubectl("taint", "nodes", node, "e2e-");
  await kubectl("cordon", node);
  assert.match(await kubectl("get", "node", node), /Ready,SchedulingDisabled/);
  await kubectl("uncordon", node);

  mkdirSync(join(folder, "base"));
  writeFileSync(
    join(folder, "base", "kustomization.yaml"),
    `namespace: ${namespace}\nnamePrefix: my-\nconfigMapGenerator:\n- {name: conf, literals: [a=1], options: {disableNameSuffixHash: true}}\n`,
  );
  assert.match(await kubectl("kustomize", join(folder, "base")), /name: my-conf/);
  assert.match(await kubectl("apply", "-k", join(folder, "base")), /configmap\/my-conf created/);
  assert.match(await kubectl("delete", "-k", join(folder, "base")), /configmap "my-conf" deleted/);
  assert.match(await run("delete", "deployment,hpa", "--all"), /deployment\.apps "web" deleted[\s\S]*autoscaling "web" deleted/);
});

test("a certificate request is approved or denied, once", async (t) => {
  const names = ["yes", "no"].map((name) => `e2e-${name}-${process.pid}`);
  const [yes, no] = names as [string, string];
  for (const name of names) {
    const { csrPem } = await newCertificateRequest({ commonName: name, organizations: ["devs"] });
    const csr = {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name },
      spec: { request: Buffer.from(csrPem).toString("base64"), signerName: "example.com/test", usages: ["client auth"] },
    };
    await kubectl("create", "-f", "-", { input: JSON.stringify(csr) });
    t.after(() => kubectl("delete", "csr", name));
  }
  assert.match(await kubectl("get", "csr", yes), /example\.com\/test +\S+ +<none> +Pending/);
  assert.match(await kubectl("certificate", "approve", yes), /approved/);
  assert.match(await kubectl("certificate", "deny", no), /denied/);
  assert.match(await kubectl("get", "csr", yes), /Approved/);
  assert.match(await kubectl("get", "csr", no), /Denied/);
  assert.match((await tryKubectl(["certificate", "deny", yes])).stderr, /is already Approved/);
});

test("run, attach, debug, proxy and port-forward to a service reach a pod", async (t) => {
  const namespace = await newNamespace(t, "run");
  const started = await kubectl(
    "run",
    "once",
    "-n",
    namespace,
    "--image=busybox:1.35",
    "--restart=Never",
    "--rm",
    "-i",
    "--",
    "cat",
    {
      input: "through run\n",
    },
  );
  assert.match(started, /through run\n(.*\n)?pod "once" deleted/);

  const script = "mkdir -p /www; echo hello > /www/index.html; httpd -p 8080 -h /www; while read line; do echo got $line; done";
  await createPod(namespace, "web", { terminationGracePeriodSeconds: 0, containers: [busybox("main", script, { stdin: true })] });
  await waitForPod(namespace, "web", "is ready", isReady);
  const attached = startKubectl(["attach", "-i", "web", "-n", namespace], true);
  t.after(() => attached.kill());
  const heard = printed(attached, /got it/);
  attached.stdin?.write("it\n");
  await heard;

  assert.match(
    await kubectl(
      "debug",
      "web",
      "-n",
      namespace,
      "--image=busybox:1.36",
      "--target=main",
      "-c",
      "debugger",
      "--",
      "sh",
      "-c",
      "ls /www",
    ),
    /Targeting container "main"/,
  );
  await waitFor("the ephemeral container has run", async () =>
    (
      await kubectl("get", "pod", "web", "-n", namespace, "-o", "jsonpath={.status.ephemeralContainerStatuses[0].state}")
    ).includes('"reason":"'),
  );

  const proxy = startKubectl(["proxy", "--port=0"]);
  t.after(() => proxy.kill());
  const address = /127\.0\.0\.1:\d+/.exec(await printed(proxy, /127\.0\.0\.1:\d+/))?.[0];
  const page = await fetch(`http://${address}/api/v1/namespaces/${namespace}/pods/web:8080/proxy/`);
  assert.equal(await page.text(), "hello\n");
  await kubectl("expose", "pod", "web", "-n", namespace, "--port=80", "--target-port=8080");
  await waitFor("the service has an endpoint", async () => {
    const answer = await fetch(`http://${address}/api/v1/namespaces/${namespace}/services/web:80/proxy/`);
    return answer.ok && (await answer.text()) === "hello\n";
  });
  const forward = startKubectl(["port-forward", "-n", namespace, "service/web", ":80"]);
  t.after(() => forward.kill());
  const local = /127\.0\.0\.1:\d+/.exec(await printed(forward, /Forwarding from 127\.0\.0\.1:\d+/))?.[0];
  assert.equal(await (await fetch(`http://${local}/`)).text(), "hello\n");
});

test("options, config, completion, plugin, cluster-info dump and auth reconcile", async (t) => {
  const folder = scratch(t);
  const namespace = await newNamespace(t, "rest");
  assert.match(await kubectl("options"), /--kubeconfig=''/);
  assert.match(await kubectl("config", "view", "--minify"), /current-context: /);
  assert.match(await kubectl("config", "get-contexts"), /CURRENT +NAME +CLUSTER/);
  assert.match(await kubectl("completion", "bash"), /kubectl/);
  await kubectl("create", "configmap", "dumped", "-n", namespace);
  await kubectl("cluster-info", "dump", `--output-directory=${folder}`, `--namespaces=${namespace}`);
  assert.ok(existsSync(join(folder, "nodes.json")));
  assert.equal(JSON.parse(readFileSync(join(folder, namespace, "pods.json"), "utf8")).kind, "PodList");
  const role = (verb: string): string => `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: ${namespace}}
rules: [{apiGroups: [""], resources: [pods], verbs: [${verb}]}]
`;
  await kubectl("apply", "-f", "-", { input: role("get") });
  assert.match(
    await kubectl("auth", "reconcile", "-f", "-", { input: role("list") }),
    /role\.rbac\.authorization\.k8s\.io\/r reconciled/,
  );
  const { rules } = await getJson<{ rules: { verbs: string[] }[] }>("role", "r", "-n", namespace);
  assert.deepEqual(rules.flatMap(({ verbs }) => verbs).sort(), ["get", "list"]);
  assert.match(await kubectl("auth", "can-i", "--list", "-n", namespace), /Resources +Non-Resource URLs +Resource Names +Verbs/);
  assert.match((await tryKubectl(["auth", "can-i", "get", "pods", "--as=jane", "-n", namespace])).stdout, /no/);
  const raw = JSON.parse(await kubectl("get", "--raw", "/api/v1/namespaces/default/services/kubernetes"));
  assert.equal(raw.kind, "Service");
  assert.match((await tryKubectl(["get", "widgets"])).stderr, /the server doesn't have a resource type "widgets"/);
  const stopped = startKubectl(["wait", "configmap/dumped", "-n", namespace, "--for=delete", "--timeout=180s"]);
  const ended = outcomeOf(stopped);
  await kubectl("delete", "configmap", "dumped", "-n", namespace);
  assert.equal((await ended).code, 0);
});
