/**
 * The requests of daemons: `GET /apis/diagnostics.coxswain.dev/v1/questions?watch=1&fieldSelector=metadata.name=<recipient>` and
 * `POST …/questions/<recipient>/answers`. RBAC gives daemons access; the handler limits each to its recipient. Answers cannot be read.
 */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import {
  answerLimitBytes,
  answersSubresource,
  nodeOfRecipient,
  type Question,
  questionsRef,
} from "@coxswain/apimachinery/decisions/question";
import { encodeJson, parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { badRequest, forbidden, methodNotSupported, notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { Status } from "@coxswain/apimachinery/objects/meta/types";
import type { RequestContext, UserInfo } from "../../request/context.ts";
import { nodeNameOf, privilegedGroup, serviceAccountUsername } from "../../request/user-names.ts";
import type { Questions } from "./questions.ts";
import { receivedDecisions } from "./received.ts";

/** @returns undefined when the request is about another resource; otherwise resolves when the response is complete */
export function handleQuestions(questions: Questions, ctx: RequestContext): Promise<void> | undefined {
  const { group, version, resource, subresource, verb, name } = ctx.info;
  if (!ctx.info.isResourceRequest || group !== questionsRef.group) return undefined;
  if (version !== questionsRef.version || resource !== questionsRef.resource) return undefined;
  if (verb === "watch" && subresource === "") return watch(questions, ctx, own(ctx.user, name));
  if (verb === "create" && subresource === answersSubresource) return answer(questions, ctx, own(ctx.user, name));
  throw methodNotSupported(questionsRef, verb);
}

/** @returns the recipient @throws Forbidden when the user is another one */
function own(user: UserInfo, recipient: string): string {
  if (recipient === "") throw badRequest("name the recipient by the field selector metadata.name");
  const node = nodeOfRecipient(recipient);
  const isOwn =
    node === undefined
      ? user.name === `system:${recipient}` || user.name === serviceAccountUsername("kube-system", recipient)
      : nodeNameOf(user) === node;
  if (isOwn || user.groups.includes(privilegedGroup)) return recipient;
  throw forbidden(questionsRef, recipient, `${user.name} does not answer for ${recipient}`);
}

const watchMs = 30 * 60_000;

/** Ends with the client or the server, or after about an hour, as other watches do. */
function watch(questions: Questions, { exchange, signal }: RequestContext, recipient: string): Promise<void> {
  return new Promise((resolve) => {
    const response = exchange.stream(200, { "content-type": "application/json" });
    let full = false;
    const stop = questions.listen(recipient, (id, refs) => {
      // A client that does not read gets no question: the question would expire before the client received it.
      if (full || signal.aborted) return;
      full = !response.write(`${JSON.stringify({ type: "ADDED", object: questionOf(id, refs) })}\n`);
      if (full) response.drained().then(() => (full = false), end);
    });
    const timer = questions.after(watchMs * (1 + Math.random()), () => end());
    function end(): void {
      timer.cancel();
      stop();
      signal.removeEventListener("abort", end);
      response.end();
      resolve();
    }
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

function questionOf(id: string, refs: readonly ObjectRef[]): Question {
  return { apiVersion: formatGroupVersion(questionsRef), kind: questionsRef.kind, metadata: { name: id }, refs };
}

async function answer(questions: Questions, { exchange }: RequestContext, recipient: string): Promise<void> {
  const given = parsed(await exchange.body(answerLimitBytes * 2));
  const id = given?.metadata?.name;
  if (typeof id !== "string") throw badRequest("metadata.name must be that of the question");
  const refs = questions.requestedRefs(id, recipient);
  if (refs === undefined) throw notFound(questionsRef, id);
  const component = nodeOfRecipient(recipient) === undefined ? recipient : "kubelet";
  await questions.answer(id, recipient, receivedDecisions(component, given, refs));
  const taken: Status = { apiVersion: "v1", kind: "Status", metadata: {}, status: "Success" };
  exchange.respond(201, { "content-type": "application/json" }, encodeJson(taken));
}

function parsed(body: Buffer): { metadata?: { name?: unknown } } | null {
  try {
    return parseJson(body) as ReturnType<typeof parsed>; // cast: `parsed` checks each field that it uses
  } catch (err) {
    throw badRequest(`the answer is not JSON: ${messageOf(err)}`);
  }
}
