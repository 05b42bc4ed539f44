/**
 * Every reason a Status can carry, with its HTTP code. docs/errors.md lists when each one is sent.
 * Source: k8s.io/apimachinery pkg/apis/meta/v1/types.go
 */
export const reasonCodes = {
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  AlreadyExists: 409,
  Conflict: 409,
  Gone: 410,
  Expired: 410,
  Invalid: 422,
  ServerTimeout: 500,
  Timeout: 504,
  TooManyRequests: 429,
  BadRequest: 400,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  InternalError: 500,
  ServiceUnavailable: 503,
} as const;

export type Reason = keyof typeof reasonCodes;
