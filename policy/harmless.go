package policy

// harmless says what is known of programs: of those that can be made to run
// others or to write any file, and of those that run what stands in their
// arguments. A line has a program, or one of its subcommands, then what it is,
// then the options that do neither, then the other words it takes, in order; the
// last of these stands for all that follow. A line that begins with a tab goes on
// with the one before. What is not on a program's line is not harmless.
//
//	-x --long         an option without a value
//	-x= --long=       with one, in the same word or the next
//	-x? --long?       with one in the same word, perhaps
//	-#                a number
//	-word             short options have a word each: -ls is not -l -s
//	!-x               runs something, or makes the rest mean something else
//	>-x               writes a file; to - and /dev/null it may
//	%-x               its value is what curl prints: it names no file
//	~-x               its value is the script, in place of the first word
//	--                from here on, no options
//	*                 a word
//	plain             a word without = :: and a leading + or @
//	value             a word without [, in which shells evaluate
//	arg               a word without a leading + or @
//	below             a path that does not lead out of the directory, nor into .git
//	package           the name of a package in a registry
//	source            a file that compilers know by its suffix, no linker script
//	fetched           a URL, where an option says that what is read goes to stdout
//	repo              a remote repository: origin, upstream, https://…, git@…
//	peer              a file, here or on a host, whose name does not look like an option
//	said              a word that only the rule may say: a script, a host
//	script            the same, or a file in a directory that the rule says: scripts/*
//	run               the first word of a command, which only the rule may say
//	shell             the same, when a shell reads the words once more
//	sedscript         a script of sed that only edits what goes through it, or one that the rule says
//	awkscript         the same of awk
//	tool              the first word of a command that is no interpreter of a language
//	bundle            letters of options, as in tar czf
//	rest              whatever
//	local             no word: of files here, a colon in a name is of a host
//	named             no word: only a rule that says the subcommand is about it
//	here              no word: what it runs or reads depends on its directory
//	any               no word: what its words do the rule answers for
//	files             no word: the same, and it runs nothing
//	reads, prints     no word: the same, and it only reads files, or not even that
//	writes            no word: it writes the files in its words
//	moves             no word: an option may say where to
//	paths             no word: it works on the files in its words
//	pattern           no word: its first word is no file, unless an option gives it
//	runs              no word: it runs a command in its arguments
//	code              no word: it runs commands that are written in a language of its
//	                  own, or changes what later commands mean
//	sh                no word: the same, and the language is the shell's
//	lang              no word: the same, unless the first word is a file
//	word              no word: the name is also an ordinary word
const harmless = `
git: here --version --help -h -v --no-pager -P --no-optional-locks --no-replace-objects --literal-pathspecs !-C= !-c= !--git-dir= !--work-tree=
	!--namespace= !--config-env= !--attr-source= !-p !--paginate !--bare
git status: -s -b -u? -v -z --short --branch --porcelain? --long --verbose --show-stash --ahead-behind --no-ahead-behind --ignored?
	--untracked-files? --no-renames -- plain
git log|show|diff|whatchanged|shortlog|reflog|rev-list|diff-tree|diff-index|diff-files|range-diff: -# -p -u -s -n= -U? -S= -G= -L= -M? -C? -D -R
	-B? -a -b -c -g -i -r -t -w -z -m -E -F -P --oneline --graph --all --stat? --numstat --shortstat --dirstat? --name-only --name-status --summary
	--patch --no-patch --patch-with-stat --raw --decorate? --no-decorate --color? --no-color --word-diff? --color-words? --abbrev? --abbrev-commit
	--no-abbrev-commit --pretty? --format= --date= --since= --after= --until= --before= --author= --committer= --grep= --invert-grep --all-match
	--max-count= --skip= --reverse --merges --no-merges --first-parent --follow --cached --staged --merge-base --exit-code --quiet --check
	--full-index --binary --minimal --patience --histogram --diff-algorithm= --diff-filter= --find-renames? --find-copies? --no-renames --relative?
	--text --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-blank-lines --ignore-cr-at-eol --unified= --function-context
	--no-ext-diff --no-textconv --no-prefix --pickaxe-all --pickaxe-regex --branches? --tags? --remotes? --topo-order --date-order
	--author-date-order --left-right --cherry-pick --cherry --cherry-mark --boundary --simplify-by-decoration --full-history --ancestry-path
	--parents --children --count --source --walk-reflogs --numbered --email --no-notes --notes? --no-index --left-only --right-only --objects --not
	--submodule? --show-pulls >--output= -- plain
git add: globs -A -u -v -n -f -N --all --update --verbose --dry-run --force --intent-to-add --chmod= --ignore-errors --renormalize --refresh --no-all --
	plain
git commit: -m= -a -F= -s -q -v -o -i -u? --message= --all --file= --amend --no-edit --signoff --quiet --verbose --allow-empty
	--allow-empty-message --author= --date= --fixup= --squash= -C= --reuse-message= --reset-author --dry-run --short --porcelain --only --include
	--cleanup= >--no-verify >-n -- plain
git branch: -a -r -v -d -D -m -M -c -C -f -l -q -u= -t --list --all --remotes --show-current --contains? --no-contains? --merged? --no-merged?
	--sort= --format= --points-at= --set-upstream-to= --unset-upstream --delete --move --copy --force --quiet --verbose --color? --no-color
	--no-track --track? -- plain
git checkout|switch|restore: -b= -B= -c= -C= -f -q -t -d -s= -S -W -m -l --detach --orphan= --track? --no-track --ours --theirs --source= --staged
	--worktree --force --quiet --guess --no-guess --create= --force-create= --discard-changes --merge --progress --no-progress --overlay --no-overlay
	-- plain
git merge: --ff --no-ff --ff-only --squash --no-squash --commit --no-commit --no-edit --abort --quit --continue -m= -n -q -v --quiet --verbose
	--stat --no-stat --allow-unrelated-histories --signoff --autostash --no-autostash --log? plain
git rebase: --onto= --continue --abort --skip --quit --autostash --no-autostash --root -q -v -n --quiet --verbose --keep-base --no-ff
	--update-refs --fork-point --no-fork-point --reapply-cherry-picks --stat plain
git fetch|pull: -a -p -t -n -q -v -f -P -j= --all --append --prune --tags --no-tags --quiet --verbose --dry-run --force --depth= --deepen=
	--unshallow --shallow-since= --jobs= --prune-tags --progress --no-progress --set-upstream --atomic --rebase? --no-rebase --ff --no-ff --ff-only
	--no-edit --autostash --no-autostash --no-commit --squash --stat --no-stat repo plain
git push: -u -n -q -v -d -f --set-upstream --tags --follow-tags --all --branches --dry-run --quiet --verbose --progress --no-progress --atomic
	--delete --force --force-with-lease? --force-if-includes --prune --porcelain --thin --no-thin repo plain
git clone: -b= -q -v -n -l -s -o= -j= --depth= --branch= --single-branch --no-single-branch --no-tags --quiet --verbose --progress --bare --mirror
	--no-checkout --filter= --origin= --jobs= --sparse --shallow-since= repo below
git ls-remote: -h -t -q --heads --tags --refs --quiet --exit-code --get-url --symref --sort= repo plain
git remote: -v --verbose
git remote show|get-url|prune|update|rename|remove|rm: -n -p -v --all --push --dry-run --prune plain
git remote add|set-url: -f -t= -m= --tags --no-tags --push plain repo
git stash: -u -k -q -a --include-untracked --keep-index --no-keep-index --quiet --all
git stash list|show|push|pop|apply|drop|branch|clear|store|create: -m= -u -k -q -a -S -p --stat --name-only --message= --include-untracked
	--keep-index --no-keep-index --quiet --all --index --staged --patch --oneline -- plain
git tag: -l -a -m= -d -f -v -n? --list --contains? --no-contains? --merged? --no-merged? --points-at? --sort= --format= --delete --force
	--annotate --message= --column? plain
git rm|mv: -r -f -n -q -k -v --cached --dry-run --force --quiet --ignore-unmatch --sparse -- below
git reset|revert|cherry-pick: -q -n -m= -x -s -N --soft --mixed --hard --merge --keep --quiet --no-commit --no-edit --mainline= --continue --abort
	--skip --quit --ff --signoff --allow-empty --no-refresh -- plain
git blame|annotate: -L= -w -C? -M? -s -e -l -t -p -f -n -b --porcelain --line-porcelain --date= --show-email --show-name --show-number --since=
	--root --abbrev= --reverse -- plain
git rev-parse: --show-toplevel --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository
	--is-shallow-repository --show-prefix --show-cdup --abbrev-ref? --short? --verify -q --quiet --symbolic --symbolic-full-name --all --branches?
	--tags? --remotes? --default= -- plain
git describe: --tags --all --always --long --dirty? --broken? --abbrev? --match= --exclude= --exact-match --first-parent --contains --candidates=
	plain
git ls-files: -c -d -m -o -i -s -u -k -v -z -t -x= --cached --deleted --modified --others --ignored --stage --unmerged --exclude-standard
	--exclude= --error-unmatch --full-name --eol --directory --no-empty-directory --debug -- plain
git ls-tree: -r -t -d -l -z --name-only --name-status --object-only --long --full-name --full-tree --abbrev? --format= plain
git cat-file: -t -s -e -p --batch-check? plain
git grep: -# -n -i -I -l -L -c -w -v -E -F -P -G -e= -h -H -o -q -A= -B= -C= -W -p -r -z -a --name-only --line-number --ignore-case --word-regexp
	--invert-match --files-with-matches --files-without-match --count --only-matching --cached --untracked --no-index --all-match --and --or --not
	--heading --break --max-depth= --extended-regexp --fixed-strings --perl-regexp --quiet --column --show-function --function-context --color?
	--no-color -- *
git merge-base|show-ref|for-each-ref|name-rev|write-tree|mktree|hash-object|count-objects|fsck|var|version|check-ignore|check-attr|cherry|show-branch|verify-commit|verify-tag|merge-tree|patch-id|stripspace:
	-a -d -q -s -t= -v -w -z -n -H --all --octopus --independent --is-ancestor --fork-point --heads --tags --format= --sort= --count? --points-at=
	--merged? --no-merged? --contains? --no-contains? --verify --hash? --stdin --short --always --name-only --refs= --full --human-readable --verbose
	--no-index --non-matching --write-tree --messages --stable -- plain
git symbolic-ref: -q --quiet --short said
git config user.name|user.email: said
git config: --global --local --system --worktree --show-origin --show-scope --includes --no-includes -z --null
git config --get|--get-all|--get-regexp|--list|-l: --global --local --system --worktree --show-origin --show-scope --name-only --includes
	--no-includes --type= --bool --int --path -z --null plain
git submodule: -q --quiet
git submodule status|summary: --recursive --cached --files -- plain
git bisect start|good|bad|old|new|skip|reset|log|next|terms: --first-parent --no-checkout --term-good --term-bad -- plain
git worktree list|prune|lock|unlock: -v -z -n --porcelain --verbose --dry-run --reason= plain
git worktree add|remove|move|repair: named -f -b= -B= --force --detach --checkout --no-checkout --track --guess-remote *
git submodule update|init|sync|add|deinit: named -f -b= --init --recursive --remote --depth= --jobs= --force --quiet *
git notes list|show|get-ref: plain
git archive: -v -l -# --list --verbose --format= --prefix= >-o= >--output= !--remote= !--exec= plain
git format-patch: --stdout -# -n -N -s -k -M? --signoff --numbered --no-numbered --start-number= --subject-prefix= --base= --thread? --no-stat
	--root plain
git apply|am: -R -3 -p? -v -q --check --stat --numstat --summary --cached --index --reverse --3way --whitespace= --recount --reject --abort
	--continue --skip --quit --signoff -- plain
git clean: -n -d -f -x -X -q -e= --dry-run --force --quiet --exclude= -- plain
git init: -q --quiet -b= --initial-branch= --bare --object-format= below
git gc|prune|pack-refs|repack: -q -n -v -a -d -l --quiet --auto --aggressive --prune? --all --dry-run --no-prune
git help: -a -g
hg: here --version
hg status|st|log|diff|id|identify|branch|branches|tags|summary|annotate|files|manifest|heads|parents: -r= -l= -v -q -p -a -m -n -u -c -g --rev=
	--limit= --stat --git
svn: here --version
svn status|st|log|info|diff|list|ls|cat|blame: -r= -l= -v -q -u --revision= --limit= --verbose --quiet --stop-on-copy --summarize --xml below
gh: loose --version --help
gh pr|issue|run|repo|release|workflow|label|cache list|ls|view|status|diff|checks: -R= -L= -s= -l= -q= -t= -c --repo= --limit= --state= --label=
	--author= --assignee= --search= --json= --jq= --template= --comments --log --log-failed --name-only --patch --required --job= --branch=
	--workflow= --user= --exit-status *
gh pr|issue create|comment|close|reopen|edit|ready|merge|checkout|review: -R= -t= -b= -B= -H= -l= -a= -r= -d -f -m -s --repo= --title= --body=
	--base= --head= --label= --add-label= --remove-label= --assignee= --reviewer= --draft --fill --merge --squash --rebase --delete-branch --auto
	--approve --comment --request-changes --reason= >-F= >--body-file= *
gh api: named -X= -f= -F= -H= -q= -i --method= --field= --raw-field= --header= --jq= --paginate --slurp --template= --cache= --silent --include *
gh auth status: --hostname=

find: paths execs -word -H -L -P -name= -iname= -path= -ipath= -wholename= -iwholename= -regex= -iregex= -regextype= -lname= -ilname= -type= -xtype=
	-maxdepth= -mindepth= -size= -mtime= -mmin= -atime= -amin= -ctime= -cmin= -newer= -newermt= -anewer= -cnewer= -samefile= -perm= -user= -group=
	-uid= -gid= -links= -inum= -fstype= -empty -not -a -o -and -or -print -print0 -printf= -ls -prune -quit -mount -xdev -depth -daystart -follow
	-noleaf -readable -writable -executable -true -false -nouser -nogroup *
fd|fdfind: paths pattern -word -H -I -u -s -i -g -F -a -l -L -p -0 -1 -q -t= -e= -E= -d= -c= -j= -S= --hidden --no-ignore --no-ignore-vcs --unrestricted
	--case-sensitive --ignore-case --glob --fixed-strings --absolute-path --list-details --follow --full-path --print0 --type= --extension=
	--exclude= --max-depth= --min-depth= --exact-depth= --max-results= --size= --changed-within= --changed-before= --color= --strip-cwd-prefix -- *
rg: paths pattern filter -# -n -N -i -s -S -w -x -v -l -c -o -q -F -P -U -H -I -L -a -h -u -p -0 -b -A= -B= -C= -e= -g= -t= -T= -m= -M= -j= -E= -r= -d= --hidden
	--no-ignore --no-ignore-vcs --files --files-with-matches --files-without-match --count --count-matches --line-number --no-line-number
	--ignore-case --case-sensitive --smart-case --word-regexp --line-regexp --fixed-strings --glob= --iglob= --type= --type-not= --type-list
	--max-count= --max-depth= --max-columns= --context= --after-context= --before-context= --regexp= --replace= --sort= --sortr= --json --stats
	--heading --no-heading --color= --colors= --only-matching --multiline --multiline-dotall --pcre2 --follow --null --vimgrep --column --trim
	--passthru --invert-match --no-messages --no-filename --with-filename --text --quiet --unrestricted --pretty --version --no-config -- *
tar|gtar|bsdtar: local -c -x -t -z -j -J -v -f= -k -p -m -r -u -h -a -O --create --extract --get --list --gzip --gunzip --bzip2 --xz --zstd --verbose
	--file= --exclude= --exclude-vcs --strip-components= --keep-old-files --wildcards --no-same-owner --no-same-permissions --to-stdout
	--auto-compress --dereference --append --update --sort= --owner= --group= --numeric-owner --mtime= >-C= >-P >--directory= >--absolute-names
	bundle *
zip: -# -r -q -j -v -u -m -y -l -x -i -e -D -X *
rsync: -# -a -v -z -r -h -n -u -t -l -p -x -c -q -P -i -C -m -o -g -k -L -H -A -X -R -W -S --archive --verbose --recursive --delete --delete-after
	--delete-before --progress --stats --dry-run --exclude= --include= --checksum --compress --partial --human-readable --update --times --links
	--perms --itemize-changes --bwlimit= --max-size= --min-size= --ignore-existing --size-only --info= peer
scp: -r -p -q -v -C -4 -6 -B -3 -P= -i= -l= peer
sort: paths filter -b -d -f -g -i -M -h -n -R -r -V -c -C -m -s -u -z -k= -t= -S= --ignore-leading-blanks --dictionary-order --ignore-case
	--general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse --version-sort --check?
	--merge --stable --unique --zero-terminated --key= --field-separator= --parallel= >-o= >--output= >-T= -- *
split: -# -l= -b= -n= -a= -C= -d -x -e -u --lines= --bytes= --line-bytes= --number= --suffix-length= --numeric-suffixes? --hex-suffixes?
	--verbose * below
uniq: paths filter -c -d -D -i -u -z -f= -s= -w= --count --repeated --ignore-case --unique --skip-fields= --skip-chars= --check-chars= --zero-terminated
sdiff|diff3: -a -b -B -d -E -i -l -m -s -t -w= -W -x -X -e -3 -A --text --merge --ignore-case --suppress-common-lines --width= *
man: -k -f -w -a -K --whatis --apropos --where --all package
less|more: -# -N -S -R -F -X -i -n -s -E -e -M -m plain
bat|batcat: -n -p -A -s -P --plain --number --show-all --style= --color= --decorations= --paging= -l= -r= -H= --language= --line-range=
	--highlight-line= --theme= --wrap= --no-pager --tabs= -- *
delta:
wget: -q -S -v -nv -t= -T= -U= --quiet --server-response --spider --verbose --no-verbose --show-progress --tries= --timeout= --user-agent=
	--header= --max-redirect= >-O= >-P= >--output-document= >--directory-prefix= fetched
curl: %-w= %--write-out= -s -S -f -L -i -I -v -k -g -G -N -0 -4 -6 -# -X= -H= -d= -A= -e= -m= -u= -r= -F= --silent --show-error --fail --fail-with-body --location
	--include --head --verbose --insecure --get --compressed --http1.1 --http2 --request= --header= --data= --data-raw= --data-urlencode=
	--data-binary= --json= --form= --user-agent= --referer= --user= --max-time= --connect-timeout= --retry= --retry-delay= --retry-all-errors
	--max-redirs= --range= --url= --oauth2-bearer= --no-progress-meter --progress-bar >-o= >-O >-D= >-c= >--output= >--remote-name >--dump-header=
	>--cookie-jar= *

go: here nested -word !-C=
go build|test|vet|list|get: -word -a -v -x -n -i -p= -race -msan -asan -cover -covermode= -coverpkg= -mod= -tags= -trimpath -buildvcs= -buildmode=
	-u -t -m -d -e -deps -test -find -compiled -json -f= -run= -bench= -benchmem -benchtime= -count= -timeout= -parallel= -cpu= -short -failfast
	-shuffle= -vet= -list= -skip= -fuzz= -fuzztime= -fullpath >-o= >-coverprofile= >-cpuprofile= >-memprofile= >-blockprofile= >-mutexprofile=
	>-trace= >-outputdir= below
go generate: -v -n -x -run= said *
go install: named -word -v -x -tags= -ldflags= -trimpath *
go doc|fmt|help|clean: -word -n -x -u -all -c -cmd -short -src -cache -testcache -modcache -fuzzcache *
go mod tidy|download|verify|graph|why|vendor: -word -v -x -m -e -json -go= -compat= -vendor *
go env: -word -json -changed plain
go version: -word -m -v *
make|gmake: here loose -k -s -n -i -q -r -R -w -d -t -S -B -p -j? -l? -O? --jobs? --silent --quiet --dry-run --just-print --keep-going --ignore-errors
	--question --always-make --no-print-directory --print-directory --trace --debug? --touch --version >-C= >-f= >--directory= >--file= plain
gcc|g++|cc|c++|clang|clang++: -c -g -g0 -g1 -g2 -g3 -w -v -O? >-o= -I= -L= -l= -D= -U= -x= -std= -Wall -Wextra -Werror -Wpedantic -Wshadow
	-Wconversion -Wno-unused -pedantic -pthread -pipe -shared -static -fPIC -fpic -fPIE -fno-exceptions -fno-rtti -fsanitize=address
	-fsanitize=undefined -fsyntax-only -march= -mtune= -m32 -m64 --version source
npm|pnpm|yarn: here nested loose -v -s -r -w= -F= --version --silent --recursive --filter= --workspace= --workspaces
npm|pnpm|yarn pkg|config get|list|ls: -g -l --json --long --global *
pnpm|yarn run: -s -r -w= --silent --if-present --workspace= --workspaces --recursive --filter= rest
pnpm|yarn test|t|start|build|lint|format|check|typecheck|dev: any
yarn workspace: * rest
npm run|run-script|test|t|start|stop|restart|build|lint|format|check|typecheck|dev: -s -w= -r --silent --if-present --workspace=
	--workspaces --recursive --filter= -- *
npm|pnpm|yarn install|i|add|update|up|upgrade: -D -E -g -S -P -O -L --save --save-dev --save-prod --save-optional --save-peer --save-exact
	--no-save --global --production --dev --omit= --include= --frozen-lockfile --no-frozen-lockfile --ignore-scripts --no-audit --no-fund
	--legacy-peer-deps --prefer-offline --offline --silent --workspaces --workspace= --filter= -w= -F= --latest --immutable adds *
npm|pnpm|yarn ci|remove|rm|uninstall|un|outdated|ls|list|audit|view|info|show|why|explain|search|root|bin|fund|prune|dedupe|ping|whoami|version|help|doctor:
	-D -E -g -S -P -O -L -y --save --save-dev --save-prod --save-optional --save-peer --save-exact --no-save --global --production --dev --omit=
	--include= --frozen-lockfile --no-frozen-lockfile --ignore-scripts --no-audit --no-fund --legacy-peer-deps --json --long --all --parseable
	--depth= --tag= --access= --dry-run --prefer-offline --offline --silent --workspaces --latest package
npm|pnpm|yarn pack|publish: --json --tag= --access= --dry-run --silent --workspaces --ignore-scripts
gofmt|goimports: files
npx|bunx: here nested -y -q --yes --no --no-install --quiet tool
cargo: here nested loose -V --version -v -q
cargo run|test|bench: -q -v -r -p= -F= -j= --quiet --verbose --release --package= --all-features --features= --no-default-features --lib --bin=
	--bins --test= --tests --example= --examples --bench= --benches --all --workspace --exclude= --all-targets --doc --locked --offline --frozen
	--jobs= --no-run --no-fail-fast --message-format= --color= -- *
cargo add|update: -p= -q -v --package= --dev --build --dry-run --features= --no-default-features --offline named plain
cargo install: named -q -v -f --locked --version= --git= --path= --features= --all-features --force --quiet *
cargo clippy: more -q -v -p= -F= -j= -D= -W= -A= --quiet --verbose --release --package= --all-features --features= --no-default-features --no-deps --lib --bin=
	--bins --test= --tests --examples --all --workspace --exclude= --all-targets --locked --offline --frozen --jobs= --message-format= --color= *
cargo build|b|check|c|doc|fmt|tree|metadata|clean|fetch|remove|search|pkgid: -q -v -r -p= -F= -j= --quiet --verbose --release
	--package= --all-features --features= --no-default-features --no-deps --lib --bin= --bins --test= --tests --example= --examples --all --workspace
	--exclude= --all-targets --locked --offline --frozen --jobs= --message-format= --format-version= --dev --build --check --dry-run --depth=
	--invert= -i= -e= -d --edges= --prefix= --duplicates --color= *
pytest|py.test: here nested loose -v -q -x -s -l -k= -m= -n= -r= --verbose --quiet --exitfirst --tb= --lf --ff --last-failed --failed-first --sw --stepwise
	--maxfail= --durations= --collect-only --co --no-header --no-summary --cache-clear --showlocals --color= --capture= --markers --fixtures
	--setup-show --timeout= below
apt|apt-get: -y -q -s -d --yes --quiet --simulate --dry-run --download-only
apt|apt-get update|upgrade|remove|purge|autoremove|clean|list|show|search|policy: -y -q -s -d -a --yes --quiet --simulate --dry-run
	--download-only --installed --upgradable --all-versions plain
apt|apt-get install: -y -q -s -d --yes --quiet --simulate --dry-run --download-only --no-install-recommends --reinstall named plain
docker|podman: here loose --version
docker|podman ps|images|logs|inspect|version|info|stats|top|port|history|search|diff: -a -q -t -f -n= -l -s --all --quiet --no-trunc --no-stream --format=
	--filter= --tail= --since= --until= --timestamps --follow *
docker|podman build|pull|start|stop|restart|rm|rmi: -t= -q -f --tag= --quiet --force --no-cache --pull --platform= named *
docker|podman push|tag|kill|system|volume|network|image|container|builder|login|logout: named -a -f -q -s= --all --force --quiet --all-tags --volumes --filter= --format= --signal= *
docker|podman compose: named -f= -p= --file= --project-name= --profile= --env-file= --ansi= --progress=
docker|podman compose up|down|ps|logs|build|pull|start|stop|restart|top|images|ls|config|port|version|kill|rm|create|pause|unpause|events: -a -d -f -q -t -v -n= --detach --build --no-build --force-recreate
	--no-recreate --remove-orphans --volumes --no-deps --wait --quiet-pull --all --quiet --services --status= --format= --follow --tail= --since= --until= --timestamps --no-color
	--no-log-prefix --no-cache --pull? --parallel --timeout= --rmi= --force --stop *
docker|podman run|exec: -i -t --rm said run

env: -i -0 -v -u= --unset= --ignore-environment --null !-C= !--chdir= -- run
sudo: -A -b -n -E -H -K -k -P -p= -u= -g= -U= -r= -t= -C= -T= --user= --group= --non-interactive --preserve-env? --set-home --prompt= !-h= !-D=
	!-R= --chdir= --chroot= -- run
doas: -n -u= -C= run
pkexec: --user= --disable-internal-agent --keep-cwd run
runuser: -u= --user= -- run
-|nohup|setsid|unbuffer|noglob|nocorrect|builtin: -c -f -w run
command: -p run
command -v|-V: *
exec: -c -l -a= run
nice: -# -n= --adjustment= run
ionice: -t -c= -n= --class= --classdata= --ignore run
chrt: -b -f -i -o -r -R -v --batch --fifo --idle --other --rr --reset-on-fork said run
taskset: -a -c --cpu-list --all-tasks said run
time: -p -v run
timeout: -f -v -s= -k= --signal= --kill-after= --preserve-status --foreground --verbose said run
stdbuf: -i= -o= -e= --input= --output= --error= run
setarch: -R -v --addr-no-randomize said run
chroot: --userspec= --groups= --skip-chdir said run
unshare: -m -u -i -n -p -U -C -f -r --mount --uts --ipc --net --pid --user --fork --map-root-user run
nsenter: -t= -m -u -i -n -p -U --target= --mount --uts --ipc --net --pid run
strace|ltrace: -# -f -ff -c -C -q -r -t -T -v -x -y -e= -E= -s= -u= -p= !-o= run
flock: -n -x -e -s -u -o -F -w= -E= --nonblock --exclusive --shared --unlock --no-fork --timeout= --wait= --verbose said run
faketime: -f --exclude-monotonic said run
caffeinate: -d -i -m -s -u -t= run
systemd-run: code -t -P -q -u= -p= --user --system --scope --wait --pty --pipe --quiet --collect --unit= --property= run
xargs: code -0 -r -t -x -I= -n= -P= -L= -d= -s= -E= -a= --null --no-run-if-empty --verbose --exit --max-args= --max-procs= --max-lines= --replace=
	--delimiter= --arg-file= run
busybox|toybox: code run
ssh: code -4 -6 -a -C -N -n -q -T -t -v -x -i= -l= -p= said shell
watch: sh word runs -b -c -d -e -g -p -t -x -n= --beep --color --differences? --errexit --chgexit --precise --no-title --exec --interval= shell
eval: code shell
sh|bash|dash|ash|zsh|ksh|mksh|lksh|loksh|oksh|posh|bosh|hush|fish|csh|tcsh|rbash|rzsh|yash|xonsh|elvish: sh here -e -u -x -l -o= !-c= script rest
source: code here script rest
.: code here word script rest
python|pypy: lang here -u -b -B -d -E -I -O -P -q -s -S -v -x -W= -X= !-c= script rest
python|pypy -m: module
python|pypy -m unittest|venv|json.tool|http.server|py_compile|compileall|doctest|mypy|black|ruff|isort|flake8|pylint|coverage|build: any
perl|ruby|php|lua|luajit|rscript|julia|tsx|ts-node: lang here !-e= script rest
r: lang here word !-e= script rest
node|nodejs: lang checks here --test --enable-source-maps !-e= script rest
deno|bun: lang here
deno|bun run|test: script rest
sed: code scripted edits paths writes pattern filter -n -E -r -z -s -u --quiet --silent --regexp-extended --posix --null-data --separate ~-e= ~--expression= >-i? >--in-place? sedscript *
awk|gawk|mawk|nawk|goawk: code scripted paths pattern -F= -v= awkscript *
su|script|runscript: sh word
parallel|sftp|crontab|trap|alias|fc|vi|vim|nvim|gvim|vimdiff|rview|rvim|vimx|emacs|emacsclient|kak|jed|osascript|expect|gdb|lldb|tclsh|wish: code
pwsh|powershell|cmd|m4|gnuplot|irb|pry|ipython|guile|ghci|runghc|iex|erl|escript|jshell|dc|bc: code
at|batch|hash|enable|view|ed|ex|rc|es|nu|scala|elixir|mysql|mariadb|sqlite|psql|octave|ocaml|racket|groovy: code word
tmux|screen|zellij|sg|newgrp|capsh|socat|nc|ncat|netcat|entr|watchexec|concurrently|prove|gosu|fakeroot|xvfb-run|dbus-run-session|setpriv|bwrap|firejail|hyperfine: runs any
git-lfs|gradle|gradlew|mvn|mvnw|ant|just|task|rake|bundle|tox|nox|jest|vitest|mocha|bazel|cmake|ctest|ninja|meson|sbt|mix|dotnet|terraform|poetry|uv|pipenv|pre-commit|composer|phpunit|tsc|eslint|webpack|vite|turbo|nx|lerna|rspec|rails|mise|direnv|nix|vagrant|ansible-playbook|helm: here any
echo|true|false|pwd|sleep|which|:: prints noop
basename|dirname|seq|date|whoami|id|hostname|uname|type|expr|yes|tty|groups|arch|nproc|uptime|clear|cal|factor: prints
jq: reads pattern filter -c -r -n -s -S -e -j -a -R -M -C --compact-output --raw-output --null-input --slurp --sort-keys --exit-status --join-output --ascii-output
	--raw-input --monochrome-output --color-output --tab --indent= --arg= --argjson= --args --jsonargs --seq --stream --version --help -h *
grep|egrep|fgrep: reads pattern filter
zgrep|yq|ag|ack: reads pattern
cat|head|tail|wc|nl|od|strings|cmp|comm|diff|cut|paste|tr|fold|column|rev|base64: reads filter
tac|ls|xxd|hexdump|stat|file|du|df|tree|fmt|expand|md5sum|sha1sum|sha256sum|sha512sum|cksum|base32|pr|numfmt|readlink|realpath|ps|lsof|free|zcat|colordiff: reads
cp|mv: files writes moves
rm|rmdir|mkdir|touch|ln|tee|chmod|chown|install|truncate|dd|gzip|gunzip|bzip2|xz|unzip|zstd|patch|mktemp: files writes
kill|pkill|cd|pushd|popd|dirs|ping|dig|host|nslookup|ss|netstat|ip: files
read: >-r >-s >-p= >-t= >-n= >-d= >-a= said
set: >-e >-u >-x >-v >-E >-o= said
mapfile|readarray|history|shopt|getopts|unset|let|export|declare|typeset|local|readonly|compgen|complete|bind|zmodload|autoload|functions:
printf: prints noop -- value
test|[: reads noop -a -b -c -d -e -f -g -h -k -n -o -p -r -s -u -w -x -z -G -L -N -O -S -ef -nt -ot value
wait|jobs|exit|return|shift: -n -f -l -r -s value
`
