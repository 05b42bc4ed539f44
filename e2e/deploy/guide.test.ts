import assert from "node:assert/strict";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { newCertificate, renewCertificate } from "@coxswain/apimachinery/serving/certificates";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { renew } from "@coxswain/pki/renew";
import { MachineCluster, minutes } from "./cluster.ts";
import { readGuide, runBlock } from "./guide.ts";
import { importImages, whyNoMachine } from "./machine.ts";

const skip = whyNoMachine() ?? (process.env["COX_TEST_LONG"] === undefined ? "a long form: COX_TEST_LONG" : undefined);
const guide = readGuide("five-machines.md");
const dayMs = 86_400_000;

describe("the guide from one machine to five", { skip }, () => {
  let cluster: MachineCluster;
  /** Sections that were run. */
  const done: string[] = [];
  let containers = "";
  const kubectl = (...args: string[]) => cluster.kubectl("cp1", ...args);
  const run = (name: string, script: string) => cluster.machine(name).shell(script);

  before(async () => {
    cluster = await MachineCluster.start();
    await cluster.boot("cp1");
    await cluster.boot("cp2");
    await cluster.boot("cp3");
    await cluster.boot("n1");
    await cluster.boot("n2");
  });
  after(() => cluster?.remove());

  /** @param afterBlock is given what each block printed, and its number from 0 */
  const section = async (
    name: string,
    t: TestContext,
    afterBlock: (printed: string, number: number) => Promise<void> | void = () => {},
  ): Promise<string> => {
    const blocks = guide.get(name);
    assert.ok(blocks, `no section ${name}`);
    done.push(name);
    let all = "";
    for (const [number, block] of blocks.entries()) {
      const printed = await runBlock(cluster, block);
      t.diagnostic(`${block.on.join(", ")}: ${printed.slice(-600)}`);
      await afterBlock(printed, number);
      all += printed;
    }
    return all;
  };
  const images = (): Promise<string> =>
    kubectl(
      "get",
      "pods",
      "--selector=app=web",
      "--output=jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].containerID}{'\\n'}{end}",
    );
  /** Waits until a control plane whose daemons were restarted has elected its leaders and runs pods. */
  const whenWell = async (by: string, nodes: readonly string[]): Promise<void> => {
    await cluster.whenReady(by, ...nodes);
    const name = `probe-${Date.now()}`;
    await cluster.kubectl(by, "create", "deployment", name, "--image=busybox:1.35", "--", "sh", "-c", "echo hello; sleep 3600");
    await cluster.kubectl(by, "wait", "--for=condition=Available", "--timeout=180s", `deployment/${name}`);
    await waitFor(async () => (await cluster.kubectl(by, "logs", `deployment/${name}`)) === "hello\n", {
      timeoutMs: minutes(1),
      retry: hasExitCode,
      what: "logs of a new pod",
    });
    await cluster.kubectl(by, "delete", "deployment", name);
  };
  /**
   * Issues all certificates of a control-plane machine again, for a year from `now`: in a copy, since links among the files lead
   * outside of the machine's root.
   */
  const reissue = async (name: string, now: number): Promise<void> => {
    const real = cluster.machine(name).path("/etc/kubernetes");
    const folder = mkdtempSync(join(tmpdir(), "cox-reissue-"));
    try {
      cpSync(`${real}/.`, folder, { recursive: true });
      const none = { apiserverNames: [], etcdNames: [], kubeletNames: [], kubeletClientGroups: [] };
      await renew({ folder, nodeName: name, ...none, server: () => "" }, { now });
      // In place: owners and modes stay.
      for (const path of globSync("**/*.{crt,conf}", { cwd: folder }))
        writeFileSync(join(real, path), readFileSync(join(folder, path)));
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
  const membersIn = (text: string): string[] =>
    [...text.matchAll(/^\w+ +(\w+) +(?:leader|follower) /gm)].map(([, name = ""]) => name).toSorted();

  test("one machine", async (t) => void (await section("One machine", t)));

  test("three machines of the control plane", async (t) => {
    assert.deepEqual(membersIn(await section("Three machines of the control plane", t)), ["cp1", "cp2", "cp3"]);
  });

  test("two nodes", async (t) => {
    await section("Two nodes", t);
    for (const name of ["n1", "n2"]) await importImages(cluster.machine(name));
  });

  test("pods of both nodes answer by the name of their Service, asked on either", async (t) => {
    const printed = await section("Services and names", t);
    const [n1 = "", n2 = ""] = printed.split('pod "ask-n1" deleted');
    for (const part of [n1, n2]) assert.ok([...part.matchAll(/^ +\d+ web-\S+$/gm)].length > 1, printed);
    for (const name of ["n1", "n2"]) assert.match(printed, new RegExp(`^web-.* ${name} `, "m"));
    containers = await images();
  });

  test("backups", async (t) => {
    assert.match(await section("Backups", t), /etcd-cp1-\d{8}T\d{6}Z\.db +\d+ /);
  });

  test("an upgrade leaves pods alone", async (t) => {
    for (const name of ["cp1", "cp2", "cp3", "n1", "n2"])
      await run(
        name,
        `mkdir /opt/coxswain-new && cd /opt/coxswain && cp -a bin lib systemd /opt/coxswain-new
         ln -s /opt/coxswain/libexec /opt/coxswain-new/libexec
         sed -i 's/v1\\.23\\.0/v1.23.1/g' /opt/coxswain-new/lib/*.js
         echo 'Coxswain 0.1.1, Kubernetes v1.23.1' >/opt/coxswain-new/VERSION`,
      );
    const printed = await section("Upgrade", t);
    for (const name of ["cp1", "cp2", "cp3", "n1", "n2"])
      assert.match(printed, new RegExp(`^${name} +Ready .* v1\\.23\\.1$`, "m"));
    assert.equal(await images(), containers);
  });

  test("the timer's unit renews what expires soon; each daemon continues, without a restart, when its earlier certificates have expired", async (t) => {
    const servers = { "kube-apiserver": 6443, kubelet: 10250, etcd: 2379 };
    const daemons = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "coxswain-services"];
    const shown = async (port: number): Promise<string> => {
      const pki = "/etc/kubernetes/pki/etcd/healthcheck-client";
      return run(
        "cp1",
        `echo | openssl s_client -connect 127.0.0.1:${port} -cert ${pki}.crt -key ${pki}.key 2>/dev/null | openssl x509 -noout -serial`,
      );
    };
    const programs = (): Promise<string> => run("cp1", `systemctl show --property=MainPID ${daemons.join(" ")}`);
    const leases = { "kube-controller-manager": "kube-system", "kube-scheduler": "kube-system", cp1: "kube-node-lease" };
    /** The holder's next renewal. */
    const whenRenewed = async (name: string, namespace: string, afterMs: number): Promise<unknown> =>
      waitFor(
        async (seen) =>
          Date.parse(
            seen(await cluster.kubectl("cp2", "get", "lease", "-n", namespace, name, "--output=jsonpath={.spec.renewTime}")),
          ) > afterMs,
        { timeoutMs: minutes(3), intervalMs: 500, retry: hasExitCode, what: `${name} to renew its lease` },
      );
    // The leaders are those of this machine.
    for (const name of ["cp2", "cp3"]) await run(name, "systemctl stop kube-controller-manager kube-scheduler");
    await whenWell("cp1", ["cp1"]);
    const before = await programs();
    const begun = Date.now();
    const endMs = begun + minutes(4);
    await reissue("cp1", endMs - 365 * dayMs);
    // Clients read their kubeconfig once a minute.
    await whenRenewed("cp1", "kube-node-lease", begun + 80_000);
    const short = Object.fromEntries(
      await Promise.all(Object.entries(servers).map(async ([name, port]) => [name, await shown(port)])),
    );
    const printed = await section("Certificates", t, (text, number) => {
      if (number > 0) return;
      assert.match(text, /coxswain-certs\.timer/);
      assert.match(text, /apiserver-etcd-client +\S+ +0h/);
    });
    assert.match(printed, /^renewed \S+apiserver\.crt$/m);
    const journal = await run("cp1", "journalctl --unit coxswain-certs.service --output=cat");
    for (const name of ["apiserver.crt", "front-proxy-client.crt", "etcd/server.crt", "controller-manager.conf", "services.conf"])
      assert.ok(journal.includes(`/${name}\n`), `${name}: ${journal}`);
    for (const [name, port] of Object.entries(servers))
      await waitFor(async () => (await shown(port)) !== short[name], {
        timeoutMs: minutes(2),
        retry: hasExitCode,
        what: `the new certificate of ${name}`,
      });
    for (const [name, namespace] of Object.entries(leases)) await whenRenewed(name, namespace, endMs + 5_000);
    // Of the API server as a client of etcd and kubelets.
    await whenWell("cp1", ["cp1"]);
    assert.match(await run("cp1", "curl --silent http://127.0.0.1:10249/healthz"), /^ok/);
    await kubectl("get", "--raw", "/api/v1/nodes/cp1/proxy/healthz");
    assert.equal(await programs(), before);
    for (const name of ["cp2", "cp3"]) await run(name, "systemctl start kube-controller-manager kube-scheduler");
  });

  const readCa = (name: string, file: string): { certPem: string; keyPem: string } => {
    const path = cluster.machine(name).path(`/etc/kubernetes/pki/${file}`);
    return { certPem: readFileSync(`${path}.crt`, "utf8"), keyPem: readFileSync(`${path}.key`, "utf8") };
  };

  test("authorities are exchanged while API, kubelets, webhooks, tokens and clients go on", async (t) => {
    const startWebhook = async (): Promise<void> => {
      const pair = await newCertificate({
        commonName: "webhook",
        ips: ["10.111.0.11"],
        usages: ["server"],
        ca: readCa("cp1", "ca"),
      });
      await cluster.machine("cp1").write("/root/webhook.pem", pair.certPem + pair.keyPem);
      await run(
        "cp1",
        "systemctl stop webhook 2>/dev/null || true; systemd-run --unit=webhook /opt/coxswain/libexec/node /root/webhook.mjs",
      );
    };
    await cluster.machine("cp1").write("/root/webhook.mjs", webhookServer);
    await startWebhook();
    const caBundle = Buffer.from(readCa("cp1", "ca").certPem).toString("base64");
    await cluster.machine("cp1").write("/root/webhook.json", JSON.stringify(webhook(caBundle)));
    await run(
      "cp1",
      "export KUBECONFIG=/etc/kubernetes/admin.conf; kubectl create --filename=/root/webhook.json; kubectl create serviceaccount outside",
    );
    const token = await waitFor(
      async () => {
        const name = await kubectl("get", "serviceaccount", "outside", "--output=jsonpath={.secrets[0].name}");
        return kubectl("get", "secret", name, "--output=go-template={{.data.token | base64decode}}");
      },
      { retry: hasExitCode, what: "a token" },
    );
    // A user's kubeconfig from before.
    await run("cp1", "cp /etc/kubernetes/admin.conf /root/user.conf");
    const check = async (number: number): Promise<void> => {
      for (const by of ["cp1", "cp2", "cp3"]) {
        await waitFor(async () => (await cluster.kubectl(by, "get", "--raw", "/readyz")) === "ok", {
          timeoutMs: minutes(1),
          retry: hasExitCode,
          what: by,
        });
        const status = await run(
          by,
          `curl --silent --fail --cacert /etc/kubernetes/pki/ca.crt --header "Authorization: Bearer ${token}" https://127.0.0.1:6443/version`,
        );
        assert.match(status, /gitVersion/);
      }
      if (number < 8) await cluster.machine("cp1").kubectl("/root/user.conf", "get", "nodes");
      for (const by of ["cp1", "cp2", "cp3"]) {
        assert.match(await cluster.kubectl(by, "create", "configmap", `asked-${number}-${by}`), /created/);
        assert.match(await run("cp1", "cat /root/asked"), new RegExp(`asked-${number}-${by}`));
      }
      await whenWell("cp2", ["cp1", "cp2", "cp3", "n1", "n2"]);
    };
    await section("New authorities", t, async (_, number) => {
      if (number === 0)
        await assert.rejects(
          run("cp2", "coxswain certs rotate-ca trust"),
          /another machine has started the rotation: copy \S+ca-next\.crt/,
        );
      // As the guide says: before the last stage servers have new certificates, and users new kubeconfigs.
      if (number === 3) await run("cp1", "cp /etc/kubernetes/admin.conf /root/user.conf");
      if (number === 5) {
        await startWebhook();
        await waitFor(() => run("cp1", "test -e /root/listening"), { retry: hasExitCode, what: "the webhook" }).catch(() => {});
        await run("cp1", "cp /etc/kubernetes/admin.conf /root/user.conf");
      }
      await check(number);
      t.diagnostic(`checked after block ${number}`);
    });
    assert.equal(await images(), containers);
    await run("cp1", "export KUBECONFIG=/etc/kubernetes/admin.conf; kubectl delete --filename=/root/webhook.json");
  });

  test("another machine takes the place of one that is lost", async (t) => {
    await cluster.boot("cp4");
    await cluster.kill("cp3");
    assert.deepEqual(membersIn(await section("A machine of the control plane is lost", t)), ["cp1", "cp2", "cp4"]);
    await whenWell("cp4", ["cp1", "cp2", "cp4", "n1", "n2"]);
  });

  test("the quorum is lost, and nothing else", async (t) => {
    await kubectl("create", "configmap", "written-last");
    await cluster.kill("cp2");
    await cluster.kill("cp4");
    assert.deepEqual(membersIn(await section("The quorum is lost", t)), ["cp1"]);
    assert.match(await kubectl("get", "configmap", "written-last", "--output=name"), /written-last/);
    await whenWell("cp1", ["cp1", "n1", "n2"]);
    assert.equal(await images(), containers);
  });

  test("a new machine takes the place of the whole control plane", async (t) => {
    await cluster.boot("cp5");
    assert.equal(cluster.address("cp5"), "10.111.0.17");
    cluster.keep("cp1", "/root/authorities.tar", "/root/last.db");
    await cluster.kill("cp1");
    await section("All machines of the control plane are lost", t);
    await whenWell("cp5", ["cp5", "n1", "n2"]);
  });

  test("certificates that have expired, of the control plane and of a node's kubelet", async (t) => {
    const then = Date.now() - 366 * dayMs;
    await reissue("cp5", then);
    const client = await run("n1", "readlink -f /var/lib/kubelet/pki/kubelet-client-current.pem");
    const file = cluster.machine("n1").path(client.trim());
    const text = readFileSync(file, "utf8");
    const key = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*/.exec(text)?.[0] ?? "";
    writeFileSync(file, (await renewCertificate({ certPem: text, ca: readCa("cp5", "ca"), now: then })) + key);
    await run(
      "cp5",
      "systemctl restart --no-block etcd kube-apiserver kube-controller-manager kube-scheduler kubelet coxswain-services",
    );
    await run("n1", "systemctl restart --no-block kubelet");
    await assert.rejects(run("cp5", "kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=5s get nodes"));
    assert.match(await section("Certificates have expired", t), /expired/);
    await whenWell("cp5", ["cp5", "n1", "n2"]);
  });

  test("an authority that is lost", async (t) => {
    await run("cp5", "rm /etc/kubernetes/pki/ca.crt /etc/kubernetes/pki/ca.key");
    await section("An authority is lost", t);
    await whenWell("cp5", ["cp5", "n1", "n2"]);
  });

  test("a full etcd", async (t) => {
    const size = Number(await run("cp5", "stat --format=%s /var/lib/etcd/member/snap/db"));
    await cluster
      .machine("cp5")
      .write(
        "/etc/systemd/system/etcd.service.d/20-quota.conf",
        `[Service]\nEnvironment=ETCD_QUOTA_BACKEND_BYTES=${size + (8 << 20)}\n`,
      );
    await run("cp5", "systemctl daemon-reload && systemctl restart etcd");
    const filler = (i: number) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `filler-${i}`, labels: { filler: "true" } },
      data: { x: "x".repeat(500_000) },
    });
    await cluster
      .machine("cp5")
      .write(
        "/root/filler.json",
        JSON.stringify({ apiVersion: "v1", kind: "List", items: Array.from({ length: 40 }, (_, i) => filler(i)) }),
      );
    const create = () => cluster.kubectl("cp5", "create", "--filename", cluster.machine("cp5").path("/root/filler.json"));
    await waitFor(
      () =>
        create().then(
          () => false,
          (err: Error) => /database space exceeded/.test(err.message),
        ),
      { timeoutMs: minutes(2), what: "etcd to be full" },
    );
    assert.match(await section("etcd is full", t), /alarm:NOSPACE/);
    await cluster.kubectl("cp5", "create", "configmap", "room");
    await whenWell("cp5", ["cp5", "n1", "n2"]);
  });

  test("every section was run", () => assert.deepEqual(done, [...guide.keys()]));
});

/** Answers yes, and notes what it was asked. */
const webhookServer = `
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:https";
const pem = readFileSync("/root/webhook.pem");
createServer({ cert: pem, key: pem }, async (request, response) => {
  let text = "";
  for await (const piece of request) text += piece;
  const review = JSON.parse(text);
  appendFileSync("/root/asked", review.request.name + "\\n");
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ ...review, response: { uid: review.request.uid, allowed: true } }));
}).listen(9443);
`;

const webhook = (caBundle: string) => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingWebhookConfiguration",
  metadata: { name: "asked", labels: { authority: "cluster" } },
  webhooks: [
    {
      name: "asked.example.test",
      clientConfig: { url: "https://10.111.0.11:9443/", caBundle },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
      failurePolicy: "Fail",
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
    },
  ],
});
