# The answers of R's mice that otimpute.pool and otimpute.pool_estimates are tested against.
#
#   Rscript docs/studies/pooling_cases.R tests/inference/mice_cases.json
#
# Needs r-cran-mice, r-cran-mitml (for D1) and r-cran-jsonlite.

suppressPackageStartupMessages({library(mice); library(jsonlite)})
set.seed(20)

# One parameter from elsewhere: pool.scalar. Its interval and p follow from df as in mice's summary().
scalar <- function(name, Q, U, n = Inf, k = 1) {
  Q <- signif(Q, 12)
  U <- signif(U, 12)
  p <- pool.scalar(Q, U, n = n, k = k)
  half <- qt(0.975, p$df) * sqrt(p$t)
  list(
    name = name, estimates = Q, variances = U, df_complete = if (is.finite(n)) n - k else NULL,
    estimate = p$qbar, within = p$ubar, between = p$b, total = p$t, df = p$df, riv = p$r, fmi = p$fmi,
    low = p$qbar - half, high = p$qbar + half, p = 2 * pt(abs(p$qbar) / sqrt(p$t), p$df, lower.tail = FALSE)
  )
}

draws <- function(m, between, within = 1, at = 1) {
  list(Q = rnorm(m, at, sqrt(between)), U = within * rchisq(m, 50) / 50)
}

settings <- list(
  list("five tables", 5, 0.3, Inf, 1), list("five tables of 50 rows", 5, 0.3, 50, 2),
  list("twenty tables", 20, 0.5, Inf, 1), list("twenty tables of 200 rows", 20, 0.5, 200, 5),
  list("a hundred tables of 1000 rows", 100, 0.2, 1000, 3), list("two tables", 2, 0.3, Inf, 1),
  list("two tables of 12 rows", 2, 0.3, 12, 2), list("hardly any missing information", 10, 1e-6, Inf, 1),
  list("hardly any missing information, 30 rows", 10, 1e-6, 30, 3), list("hardly any information left", 10, 1e3, Inf, 1),
  list("hardly any information left, 30 rows", 10, 1e3, 30, 3), list("one degree of freedom", 5, 0.3, 3, 2)
)
scalars <- lapply(settings, function(s) {
  d <- draws(s[[2]], s[[3]])
  scalar(s[[1]], d$Q, d$U, s[[4]], s[[5]])
})
scalars <- c(scalars, list(
  scalar("no variance between tables", rep(2, 5), c(1, 1.1, 0.9, 1.2, 1), Inf, 1),
  scalar("no variance between tables of 40 rows", rep(2, 5), c(1, 1.1, 0.9, 1.2, 1), 40, 2),
  scalar("tiny numbers", 1e-9 * (1 + 0.1 * (1:6)), rep(1e-20, 6), 100, 4),
  scalar("large numbers", 1e9 * (1 + 0.1 * (1:6)), rep(1e16, 6), 100, 4)
))

# Linear models on tables imputed by mice: pool, summary and D1.
table_of <- function(n, holes) {
  x <- matrix(rnorm(4 * n), n) %*% chol(0.5 + 0.5 * diag(4))
  data <- data.frame(y = 0.2 * x[, 1] + 0.3 * x[, 2] + 0.1 * x[, 4] + rnorm(n), a = x[, 1], b = x[, 2], c = x[, 3], d = x[, 4])
  for (column in c("y", "a", "b", "d")) data[runif(n) < holes, column] <- NA
  data
}

fitted <- function(name, n, m, holes, model, smaller) {
  imputed <- mice(table_of(n, holes), m = m, maxit = 3, method = "norm", seed = 1, printFlag = FALSE)
  fit <- with(imputed, lm(as.formula(model)))
  fit0 <- with(imputed, lm(as.formula(smaller)))
  fits <- getfit(fit)
  pooled <- pool(fit)
  said <- summary(pooled, conf.int = TRUE)
  test <- D1(fit, fit0)$result
  unlimited <- mitml::testModels(as.mitml.result(fit), as.mitml.result(fit0), method = "D1")$test  # no limit to the degrees of freedom
  dropped <- setdiff(names(coef(fits[[1]])), names(coef(getfit(fit0)[[1]])))
  list(
    name = name, names = names(coef(fits[[1]])), df_complete = df.residual(fits[[1]]),
    estimates = t(sapply(fits, coef)), covariances = lapply(fits, function(f) unname(vcov(f))),
    estimate = said$estimate, std_error = said$std.error, df = said$df, p = said$p.value,
    low = said[["2.5 %"]], high = said[["97.5 %"]],
    within = pooled$pooled$ubar, between = pooled$pooled$b, total = pooled$pooled$t,
    riv = pooled$pooled$riv, lambda = pooled$pooled$lambda, fmi = pooled$pooled$fmi,
    D1 = list(names = dropped, statistic = test[1, "F.value"], df1 = test[1, "df1"], df2 = test[1, "df2"], p = test[1, "P(>F)"],
              df2_unlimited = unlimited[1, "df2"], p_unlimited = unlimited[1, "P(>F)"])
  )
}

models <- list(
  fitted("five tables, two parameters", 100, 5, 0.2, "y ~ a + b + c", "y ~ a"),
  fitted("twenty tables, three parameters", 200, 20, 0.3, "y ~ a + b + c + d", "y ~ a"),
  fitted("ten tables of 40 rows", 40, 10, 0.2, "y ~ a + b + c", "y ~ b"),
  fitted("seven tables, one parameter", 150, 7, 0.3, "y ~ a + b", "y ~ a"),
  fitted("three tables, four parameters", 300, 3, 0.1, "y ~ a + b + c + d", "y ~ 1"),
  fitted("few holes", 500, 5, 0.01, "y ~ a + b", "y ~ 1"),
  fitted("three tables, one parameter", 150, 3, 0.3, "y ~ a + b", "y ~ a"),
  fitted("thirteen rows, three parameters", 13, 5, 0.2, "y ~ a + b + c", "y ~ 1")
)

about <- list(made_by = "docs/studies/pooling_cases.R", mice = as.character(packageVersion("mice")),
              mitml = as.character(packageVersion("mitml")), R = paste(R.version$major, R.version$minor, sep = "."))
path <- commandArgs(trailingOnly = TRUE)[1]
writeLines(toJSON(list(about = about, scalars = scalars, models = models), digits = I(17), auto_unbox = TRUE, null = "null"), path)
