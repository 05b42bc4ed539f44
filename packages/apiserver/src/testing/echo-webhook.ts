/**
 * Worker thread: a webhook whose answers are as large as its path says, so that the work for them is not that of the thread under
 * test. `/convert` converts by changing the apiVersion.
 */
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

interface EchoWebhookData {
  readonly cert: string;
  readonly key: string;
}

const many = 50_000;
const each = (text: (at: number) => string): string => Array.from({ length: many }, (_, at) => text(at)).join();
const patch = `[{"op":"add","path":"/data","value":{${each((at) => `"k${at}":"v"`)}}}]`;
/** Members of the response, by path. */
const members: Readonly<Record<string, string>> = {
  "/allow": "",
  "/patch": `,"patchType":"JSONPatch","patch":"${Buffer.from(patch).toString("base64")}"`,
  "/annotate": `,"auditAnnotations":{${each((at) => `"a${at}":"v"`)}}`,
};

function answerTo(path: string, text: string): string {
  if (path !== "/convert") {
    const uid = /"uid":"([^"]+)","userInfo"/.exec(text)?.[1];
    const response = `{"uid":"${uid}","allowed":true${members[path]}}`;
    return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":${response}}`;
  }
  const { request } = JSON.parse(text);
  for (const object of request.objects) object.apiVersion = request.desiredAPIVersion;
  const response = { uid: request.uid, result: { status: "Success" }, convertedObjects: request.objects };
  return JSON.stringify({ kind: "ConversionReview", apiVersion: "apiextensions.k8s.io/v1", response });
}

const server = createServer(workerData as EchoWebhookData, (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.once("end", () => {
    response.setHeader("content-type", "application/json");
    response.end(answerTo(request.url?.split("?")[0] ?? "", Buffer.concat(chunks).toString()));
  });
});
server.listen(0, "127.0.0.1", () => parentPort?.postMessage((server.address() as AddressInfo).port));
