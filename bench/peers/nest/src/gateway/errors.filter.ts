import { type ServiceError, status } from "@grpc/grpc-js";
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, HttpStatus, Logger } from "@nestjs/common";
import type { FastifyReply } from "fastify";

const HTTP_STATUS: Partial<Record<status, HttpStatus>> = {
  [status.INVALID_ARGUMENT]: HttpStatus.BAD_REQUEST,
  [status.NOT_FOUND]: HttpStatus.NOT_FOUND,
  [status.FAILED_PRECONDITION]: HttpStatus.CONFLICT,
  [status.UNAVAILABLE]: HttpStatus.SERVICE_UNAVAILABLE,
  [status.DEADLINE_EXCEEDED]: HttpStatus.GATEWAY_TIMEOUT,
};

/** Every error is `{code, message, status}`. */
@Catch()
export class ErrorsFilter implements ExceptionFilter {
  private readonly logger = new Logger(ErrorsFilter.name);

  catch(error: unknown, host: ArgumentsHost): void {
    const answer = this.answerTo(error);
    void host.switchToHttp().getResponse<FastifyReply>().status(answer.status).send(answer);
  }

  private answerTo(error: unknown): { code: string; message: string; status: number } {
    if (error instanceof HttpException) {
      const said = error.getResponse();
      const reasons = typeof said === "object" && "message" in said ? [said.message].flat() : [error.message];
      const code = error.getStatus() === HttpStatus.NOT_FOUND ? "ROUTE_NOT_FOUND" : "VALIDATION_FAILED";
      return { code, message: reasons.join("; "), status: error.getStatus() };
    }
    const { code, details, metadata } = error as Partial<ServiceError>;
    const httpStatus = code === undefined ? undefined : HTTP_STATUS[code];
    if (httpStatus !== undefined && details !== undefined) {
      const [reason = "UNAVAILABLE"] = metadata?.get("reason") ?? [];
      return { code: `${reason}`, message: details, status: httpStatus };
    }
    this.logger.error(error);
    return { code: "INTERNAL", message: "Something went wrong here. It is logged.", status: 500 };
  }
}
