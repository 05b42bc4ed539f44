import { get } from "node:https";
import { loadKubeconfig } from "@coxswain/apimachinery/client/kubeconfig";
import { kubeconfigFile } from "@coxswain/dev-cluster/pki";
import { WebSocket } from "ws";
import type { NodeCluster } from "./node-stage.ts";

/** Streams between a client and a container, through the API server and the kubelet: as the cluster's administrator. */

interface Admin {
  readonly host: string;
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

async function adminOf({ settings }: NodeCluster): Promise<Admin> {
  const { host, ca, cert, key } = await loadKubeconfig(kubeconfigFile(settings, "admin"));
  return { host, tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) } };
}

/** Opens a WebSocket on a subresource of a pod. @param onData gets the channel and what came on it. @returns resolves when it has ended */
async function webSocket(
  cluster: NodeCluster,
  subresource: string,
  onOpen: (socket: WebSocket) => void,
  onData: (channel: number, bytes: Buffer, socket: WebSocket) => void,
): Promise<void> {
  const { host, tls } = await adminOf(cluster);
  const url = `${host.replace(/^http/, "ws")}/api/v1/namespaces/${cluster.namespace}/pods/${subresource}`;
  const socket = new WebSocket(url, ["v4.channel.k8s.io"], tls);
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.once("open", () => onOpen(socket));
    socket.once("close", () => resolve());
    socket.on("message", (data: Buffer) => onData(data[0] ?? 0, data.subarray(1), socket));
  });
}

/** Runs a command in the container `main`, and waits for its end. @throws Error when it failed */
export async function exec(cluster: NodeCluster, pod: string, command: readonly string[]): Promise<void> {
  const query = new URLSearchParams({ container: "main", stdout: "1", stderr: "1" });
  for (const word of command) query.append("command", word);
  let status = "";
  const collect = (channel: number, bytes: Buffer): void => {
    if (channel === 3) status += bytes.toString();
  };
  await webSocket(cluster, `${pod}/exec?${query}`, () => {}, collect);
  if (!status.includes('"Success"')) throw new Error(`${command.join(" ")} in ${pod}: ${status}`);
}

/** Requests a file from a web server in the pod, through a forwarded port. @returns the number of bytes received */
export async function forwardedGet(cluster: NodeCluster, pod: string, port: number, path: string): Promise<number> {
  let received = 0;
  let expected = Number.POSITIVE_INFINITY;
  let isPortTold = false;
  const onData = (channel: number, bytes: Buffer, socket: WebSocket): void => {
    if (channel === 1 && bytes.length > 2) throw new Error(`port ${port} of ${pod}: ${bytes.toString("utf8", 0, 300)}`);
    if (channel !== 0) return;
    if (!isPortTold) {
      isPortTold = true; // the first message of a channel is the number of its port
      socket.send(Buffer.from(`\0GET ${path} HTTP/1.0\r\n\r\n`));
      return;
    }
    if (received === 0) {
      const head = bytes.toString("latin1", 0, bytes.indexOf("\r\n\r\n") + 4);
      expected = head.length + Number(/^content-length: (\d+)/im.exec(head)?.[1]);
    }
    received += bytes.length;
    if (received >= expected) socket.close();
  };
  await webSocket(cluster, `${pod}/portforward?ports=${port}`, () => {}, onData);
  if (received !== expected) throw new Error(`${pod}${path}: ${received} of ${expected} bytes`);
  return received;
}

/** Follows a pod's log until a text appears. @returns the number of bytes received */
export async function followLog(cluster: NodeCluster, pod: string, last: string): Promise<number> {
  const { host, tls } = await adminOf(cluster);
  const url = `${host}/api/v1/namespaces/${cluster.namespace}/pods/${pod}/log?follow=true`;
  return new Promise((resolve, reject) => {
    const request = get(url, { ...tls, agent: false }, (response) => {
      let received = 0;
      let tail = "";
      response.on("data", (bytes: Buffer) => {
        received += bytes.length;
        tail = (tail + bytes.toString("latin1", Math.max(0, bytes.length - 100))).slice(-200);
        if (!tail.includes(last)) return;
        request.destroy();
        resolve(received);
      });
      response.once("end", () => reject(new Error(`the log of ${pod} ended after ${received} bytes (${response.statusCode})`)));
    });
    request.once("error", reject);
  });
}
