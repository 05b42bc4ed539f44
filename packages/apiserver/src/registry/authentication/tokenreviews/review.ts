import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import type { TokenReview } from "@coxswain/apimachinery/objects/schema/kinds/authentication/v1";
import type { SubresourceCall } from "../../generic/resource.ts";

/**
 * Authenticates a token with the authenticators of this server; stores nothing. An unknown token is reported in the status,
 * not as an error.
 * Source: pkg/registry/authentication/tokenreview/storage.go
 */
export async function reviewToken(call: SubresourceCall<TokenReview>): Promise<TokenReview> {
  const review = call.body;
  if (review) await call.admit(review, undefined);
  const token = review?.spec?.token ?? "";
  if (!review || token === "") throw badRequest("token is required for TokenReview in authentication");
  if (call.services.authenticateToken === undefined) return { ...review, status: {} };
  const audiences = review.spec?.audiences ?? [];
  const status: NonNullable<TokenReview["status"]> = {};
  try {
    const result = await call.services.authenticateToken(token, audiences);
    if (result !== undefined) {
      const { user } = result;
      status.authenticated = true;
      status.user = { username: user.name };
      if (user.uid) status.user.uid = user.uid;
      if (user.groups.length > 0) status.user.groups = [...user.groups];
      const extra = Object.entries(user.extra ?? {}).map(([key, values]): [string, string[]] => [key, [...values]]);
      if (extra.length > 0) status.user.extra = Object.fromEntries(extra);
      if (result.audiences?.length) status.audiences = [...result.audiences];
    }
  } catch (err) {
    status.error = messageOf(err);
  }
  return { ...review, status };
}
