# Completes tables with R's mice, for multiple_imputation.py: Rscript multiple_imputation.R IN OUT METHOD M
# IN holds tables below each other, told apart by the column "table"; OUT gets all completed tables with a column "imp".
suppressMessages(library(mice))
given <- commandArgs(TRUE)
tables <- read.csv(given[1], stringsAsFactors = TRUE)
m <- as.integer(given[4])
completed <- lapply(split(tables, tables$table), function(each) {
  number <- each$table[1]
  # "pmm" is mice's default: predictive mean matching for numbers, (multinomial) logistic regression for categories.
  method <- if (given[3] == "pmm") NULL else given[3]
  imputed <- suppressWarnings(mice(each[, -1], m = m, method = method, printFlag = FALSE, seed = number))
  long <- complete(imputed, "long")
  cbind(table = number, imp = long$.imp, long[, setdiff(names(long), c(".imp", ".id"))])
})
write.csv(do.call(rbind, completed), given[2], row.names = FALSE)
